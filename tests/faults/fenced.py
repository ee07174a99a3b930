"""``python -m tests.faults.fenced COMMAND…``: runs a command where every packet that would leave the machine is caught.

For use in a network namespace of its own (``unshare --net``): all that is not loopback is routed into a device that
only this program reads, so what any process sends is seen, whoever made the socket. The last line of stdout is a JSON
list of ``[protocol, destination]``; the lines before it are the command's.
"""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
import struct
import subprocess
import sys

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_SETUP = (
    "ip link set lo up && ip link set fence up && ip addr add 10.255.77.2/24 dev fence && "
    "ip route add default dev fence && (ip -6 route add default dev fence || true)"
)


def destination(packet: bytes) -> tuple[int, str]:
    """Protocol number and destination of an IP packet."""
    if packet[0] >> 4 == 4:
        return packet[9], str(ipaddress.ip_address(packet[16:20]))
    return packet[6], str(ipaddress.ip_address(packet[24:40]))


def main(command: list[str]) -> int:
    """Returns the command's exit code."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH14x", b"fence", _IFF_TUN | _IFF_NO_PI))
    subprocess.run(["sh", "-c", _SETUP], check=True, stderr=subprocess.DEVNULL)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    caught: list[tuple[int, str]] = []
    while True:
        try:
            caught.append(destination(os.read(device, 65536)))
        except BlockingIOError:
            break
    # What the kernel sends by itself to find its neighbours on a new device is nobody's.
    own = [(kind, where) for kind, where in caught if not (":" in where and where.startswith("ff02:"))]
    print(done.stdout, end="")
    print(json.dumps(own))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
