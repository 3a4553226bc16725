"""The shop's business database at the moment the logs end. Its rows agree with the log lines one by one."""

import sqlite3
from collections import Counter
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from local.demo.story import (
    CATALOGUE,
    CHANGE_ID,
    INVENTORY_DEPLOY,
    POOL_AFTER,
    POOL_BEFORE,
    POOL_CHANGE,
    Order,
    Outcome,
    Story,
)

_SCHEMA = """
CREATE TABLE orders (
  order_id VARCHAR(16) PRIMARY KEY, customer_id VARCHAR(16) NOT NULL, status VARCHAR(16) NOT NULL,
  amount_cents INTEGER NOT NULL, currency CHAR(3) NOT NULL, created_at DATETIME NOT NULL,
  updated_at DATETIME NOT NULL);
CREATE TABLE payments (
  payment_id VARCHAR(16) PRIMARY KEY, order_id VARCHAR(16) NOT NULL REFERENCES orders,
  status VARCHAR(16) NOT NULL, attempts INTEGER NOT NULL, amount_cents INTEGER NOT NULL,
  created_at DATETIME NOT NULL);
CREATE TABLE reservations (
  reservation_id VARCHAR(16) PRIMARY KEY, order_id VARCHAR(16) NOT NULL REFERENCES orders,
  sku VARCHAR(16) NOT NULL REFERENCES stock, units INTEGER NOT NULL, status VARCHAR(16) NOT NULL,
  created_at DATETIME NOT NULL, expires_at DATETIME NOT NULL);
CREATE TABLE stock (
  sku VARCHAR(16) PRIMARY KEY, name VARCHAR(64) NOT NULL, on_hand INTEGER NOT NULL,
  reserved INTEGER NOT NULL);
CREATE TABLE config_change (
  change_id VARCHAR(16) PRIMARY KEY, service VARCHAR(32) NOT NULL, setting VARCHAR(64) NOT NULL,
  old_value VARCHAR(64) NOT NULL, new_value VARCHAR(64) NOT NULL, changed_by VARCHAR(32) NOT NULL,
  changed_at DATETIME NOT NULL);
CREATE TABLE deploy (
  deploy_id VARCHAR(16) PRIMARY KEY, service VARCHAR(32) NOT NULL, version VARCHAR(16) NOT NULL,
  note VARCHAR(128) NOT NULL, deployed_at DATETIME NOT NULL);
CREATE INDEX orders_created ON orders (created_at);
CREATE INDEX payments_created ON payments (created_at);
"""

_ORDER_STATUS = {Outcome.PAID: "PAID", Outcome.DECLINED: "CANCELLED", Outcome.TIMED_OUT: "PENDING"}
_PAYMENT_STATUS = {Outcome.PAID: "CAPTURED", Outcome.DECLINED: "DECLINED", Outcome.TIMED_OUT: "TIMED_OUT"}


def write_database(story: Story, path: Path) -> None:
    """Writes the SQLite file `path`, replacing it whole: a reader sees the old one or the new one."""
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with closing(sqlite3.connect(draft)) as connection, connection:
        connection.executescript(_SCHEMA)
        connection.executemany("INSERT INTO stock VALUES (?, ?, ?, ?)", _stock(story))
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?)", map(_order, story.orders))
        connection.executemany("INSERT INTO payments VALUES (?, ?, ?, ?, ?, ?)", map(_payment, story.orders))
        connection.executemany(
            "INSERT INTO reservations VALUES (?, ?, ?, ?, ?, ?, ?)",
            [_reservation(story, order) for order in story.orders],
        )
        connection.executemany("INSERT INTO config_change VALUES (?, ?, ?, ?, ?, ?, ?)", _changes(story))
        connection.executemany("INSERT INTO deploy VALUES (?, ?, ?, ?, ?)", _deploys(story))
    draft.replace(path)


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"


def _order(order: Order) -> tuple[str | int, ...]:
    updated = order.placed_at if order.outcome is Outcome.TIMED_OUT else order.settled_at
    return (
        order.order_id,
        order.customer,
        _ORDER_STATUS[order.outcome],
        order.amount_cents,
        "EUR",
        _stamp(order.placed_at),
        _stamp(updated),
    )


def _payment(order: Order) -> tuple[str | int, ...]:
    return (
        order.payment_id,
        order.order_id,
        _PAYMENT_STATUS[order.outcome],
        order.attempts,
        order.amount_cents,
        _stamp(order.placed_at),
    )


def _reservation_status(story: Story, order: Order) -> str:
    if order.outcome is Outcome.PAID:
        return "COMMITTED"
    if order.outcome is Outcome.DECLINED:
        return "RETURNED"
    return "EXPIRED" if story.expired(order) else "ACTIVE"


def _reservation(story: Story, order: Order) -> tuple[str | int, ...]:
    return (
        order.reservation_id,
        order.order_id,
        order.sku.code,
        order.quantity,
        _reservation_status(story, order),
        _stamp(order.reserved_at),
        _stamp(order.expires_at),
    )


def _stock(story: Story) -> list[tuple[str, str, int, int]]:
    sold: Counter[str] = Counter()
    held: Counter[str] = Counter()
    for order in story.orders:
        status = _reservation_status(story, order)
        sold[order.sku.code] += order.quantity * (status == "COMMITTED")
        held[order.sku.code] += order.quantity * (status == "ACTIVE")
    return [(sku.code, sku.name, sku.initial_stock - sold[sku.code], held[sku.code]) for sku in CATALOGUE]


def _changes(story: Story) -> list[tuple[str, ...]]:
    def change(number: str, service: str, setting: str, old: int, new: int, by: str, at: timedelta) -> tuple[str, ...]:
        return (number, service, setting, str(old), str(new), by, _stamp(story.at(at)))

    return [
        change("CHG-3101", "checkout", "session.cache_minutes", 20, 30, "mira", timedelta(hours=8, minutes=41)),
        change("CHG-3104", "inventory", "labels.per_page", 8, 12, "jonas", timedelta(hours=13, minutes=20)),
        change(
            CHANGE_ID,
            "payments",
            "gateway.pool.max_connections",
            POOL_BEFORE,
            POOL_AFTER,
            "release-bot",
            POOL_CHANGE,
        ),
    ]


def _deploys(story: Story) -> list[tuple[str, ...]]:
    return [
        ("DEP-0418", "checkout", "5.3.0", "address form", _stamp(story.at(timedelta(hours=6, minutes=10)))),
        ("DEP-0419", "inventory", "2.8.1", "label printing", _stamp(story.at(INVENTORY_DEPLOY))),
    ]
