"""What happens in the demo: every order of the day and how it ended. Logs and database tell this."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

SEED = 20261130
DEFAULT_DAY = date(2026, 11, 30)
OPEN_HOURS = timedelta(hours=15, minutes=30)
"""The logs end at 15:30 UTC, while the failure goes on: that is when the engineer asks."""

POOL_CHANGE = timedelta(hours=13, minutes=52, seconds=7)
CAMPAIGN = timedelta(hours=14)
INVENTORY_DEPLOY = timedelta(hours=13, minutes=20, seconds=31)
RESERVATION_TTL = timedelta(minutes=15)
GATEWAY_TIMEOUT_MS = 3_000
POOL_BEFORE, POOL_AFTER = 40, 4
CHANGE_ID = "CHG-3107"

# Orders a minute, from this hour on. The campaign brings the demand that the small pool can't carry.
_DEMAND = ((0.0, 0.5), (6.0, 1.5), (12.0, 2.0), (14.0, 5.0))
_LAST_ORDER_BEFORE_END = timedelta(seconds=30)


class Outcome(StrEnum):
    PAID = "PAID"
    DECLINED = "DECLINED"
    TIMED_OUT = "TIMED_OUT"


@dataclass(frozen=True)
class Sku:
    code: str
    name: str
    price_cents: int
    initial_stock: int


CATALOGUE = (
    Sku("SKU-1001", "Enamel mug", 1290, 900),
    Sku("SKU-1002", "Travel kettle", 3450, 700),
    Sku("SKU-1003", "Tea sampler", 1875, 900),
    Sku("SKU-1004", "Desk lamp", 4999, 600),
    Sku("SKU-1005", "陶瓷茶壶", 6800, 500),
    Sku("SKU-1006", "Wool blanket", 8950, 500),
)


@dataclass(frozen=True)
class Order:
    """One order. Times are UTC; `payment_ms` is how long its payment took in all."""

    number: int
    placed_at: datetime
    customer: str
    sku: Sku
    quantity: int
    chinese: bool
    outcome: Outcome
    payment_ms: int
    pool_wait_ms: int

    @property
    def order_id(self) -> str:
        return f"ORD-{self.number}"

    @property
    def payment_id(self) -> str:
        return f"PAY-{self.number - 20_000}"

    @property
    def reservation_id(self) -> str:
        return f"RSV-{self.number + 400_000}"

    @property
    def amount_cents(self) -> int:
        return self.sku.price_cents * self.quantity

    @property
    def attempts(self) -> int:
        return 2 if self.outcome is Outcome.TIMED_OUT else 1

    @property
    def reserved_at(self) -> datetime:
        return self.placed_at + timedelta(milliseconds=45)

    @property
    def settled_at(self) -> datetime:
        """When checkout knew how the payment ended."""
        return self.placed_at + timedelta(milliseconds=120 + self.payment_ms)

    @property
    def expires_at(self) -> datetime:
        return self.reserved_at + RESERVATION_TTL


@dataclass(frozen=True)
class Story:
    """The day from midnight to `ends_at`, both UTC."""

    starts_at: datetime
    ends_at: datetime
    orders: tuple[Order, ...]

    def at(self, since_midnight: timedelta) -> datetime:
        return self.starts_at + since_midnight

    def expired(self, order: Order) -> bool:
        """Whether the stock held for an unpaid order was given back before the logs end."""
        return order.outcome is Outcome.TIMED_OUT and order.expires_at < self.ends_at - timedelta(seconds=10)


def tell(day: date, seed: int = SEED) -> Story:
    """The same day and seed give the same story; another day changes the dates only."""
    starts_at = datetime.combine(day, time(), UTC)
    ends_at = starts_at + OPEN_HOURS
    dice = random.Random(seed)  # noqa: S311 - a repeatable story, not a secret
    last = OPEN_HOURS - _LAST_ORDER_BEFORE_END
    orders = tuple(
        _order(104_001 + index, starts_at, offset, dice) for index, offset in enumerate(_arrivals(dice, last))
    )
    return Story(starts_at=starts_at, ends_at=ends_at, orders=orders)


def _arrivals(dice: random.Random, last: timedelta) -> Iterator[timedelta]:
    offset = timedelta(minutes=1)
    while offset < last:
        yield offset
        hours = offset / timedelta(hours=1)
        per_minute = next(rate for since, rate in reversed(_DEMAND) if hours >= since)
        gap = dice.expovariate(per_minute / 60)
        offset += timedelta(milliseconds=round(1000 * min(max(gap, 0.4), 600)))


def _order(number: int, starts_at: datetime, offset: timedelta, dice: random.Random) -> Order:
    outcome = _outcome(offset, dice)
    return Order(
        number=number,
        placed_at=starts_at + offset,
        customer=f"CUS-{dice.randrange(2000, 2900)}",
        sku=dice.choice(CATALOGUE),
        quantity=dice.choice((1, 1, 1, 2, 3)),
        chinese=dice.random() < 0.15,
        outcome=outcome,
        payment_ms=_payment_ms(outcome, dice),
        pool_wait_ms=dice.randrange(600, 2600) if offset > POOL_CHANGE and dice.random() < 0.6 else 0,
    )


def _outcome(offset: timedelta, dice: random.Random) -> Outcome:
    roll = dice.random()
    if offset >= CAMPAIGN and roll < 0.68:
        return Outcome.TIMED_OUT
    return Outcome.DECLINED if roll > 0.975 else Outcome.PAID


def _payment_ms(outcome: Outcome, dice: random.Random) -> int:
    if outcome is Outcome.TIMED_OUT:
        return 2 * GATEWAY_TIMEOUT_MS + 640 + dice.randrange(120)
    return dice.randrange(280, 900)
