import pytest

from parcels.orders import Order
from parcels.routing import NoCarrier, choose


def test_the_cheapest_able_carrier_wins():
    assert choose(Order("1", "shop", "pl", 2_000)).name == "Wren"


def test_express_needs_an_express_carrier():
    assert choose(Order("2", "shop", "PL", 2_000, express=True)).name == "Falcon"


def test_a_parcel_nobody_takes_is_an_error_that_says_why():
    with pytest.raises(NoCarrier, match="40000 g to PL"):
        choose(Order("3", "shop", "PL", 40_000))
