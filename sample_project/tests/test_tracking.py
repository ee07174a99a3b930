from parcels.orders import Order, Status
from parcels.repository import OrderRepository
from parcels.tracking import refresh


def test_a_delivered_parcel_is_stored_as_delivered():
    orders = OrderRepository()
    orders.add(Order("7", "shop", "PL", 500))
    assert refresh("7", orders, lambda order_id: "Delivered") is Status.DELIVERED
    assert orders.get("7").status is Status.DELIVERED


def test_unknown_words_change_nothing():
    orders = OrderRepository()
    orders.add(Order("8", "shop", "PL", 500))
    assert refresh("8", orders, lambda order_id: "resting") is Status.ACCEPTED
