"""Exact money: integers of pico-USD inside, `Decimal` in Python, decimal strings outside. Never a float.

A price of 1 USD per million tokens is 1,000,000 pico-USD per token, so every list price and every surcharge the provider
has published is a whole number of pico-USD per token, and sums stay exact on every database.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

PICO_PER_USD = 10**12
# USD per million tokens -> pico-USD per token.
PICO_PER_TOKEN_AT_ONE_USD_PER_MILLION = 10**6
MINIMUM_DECIMALS = 6


class AmountError(ValueError):
    """The text is not an amount of money that the ledger can hold exactly."""


def usd(pico: int) -> Decimal:
    """The exact amount in USD."""
    return Decimal(pico).scaleb(-12)


def usd_text(pico: int) -> str:
    """A decimal string with at least six places, and more only where they carry something: "0.036000", "0.0000000125"."""
    sign = "-" if pico < 0 else ""
    whole, fraction = divmod(abs(pico), PICO_PER_USD)
    digits = f"{fraction:012d}".rstrip("0").ljust(MINIMUM_DECIMALS, "0")
    return f"{sign}{whole}.{digits}"


def rate_from_usd_per_million(value: Decimal | str | int) -> int:
    """Pico-USD per token for a price in USD per million tokens; refuses what is negative, not a number or finer than pico."""
    try:
        price = Decimal(value)
    except (InvalidOperation, ValueError, TypeError):
        raise AmountError(f"{value!r} is not a price") from None
    if not price.is_finite() or price < 0:
        raise AmountError(f"{value!r} is not a price")
    if price > 100_000:
        raise AmountError(f"{value!r} is more than 100,000 USD per million tokens")
    pico = price * PICO_PER_TOKEN_AT_ONE_USD_PER_MILLION
    if pico != pico.to_integral_value():
        raise AmountError(f"{value!r} has more than six decimals")
    return int(pico)


def usd_per_million_text(rate: int) -> str:
    """The price of a rate in USD per million tokens, in its shortest form: "4", "0.125"."""
    whole, fraction = divmod(rate, PICO_PER_TOKEN_AT_ONE_USD_PER_MILLION)
    digits = f"{fraction:06d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def scaled(pico: int, numerator: int, denominator: int) -> int:
    """`pico * numerator / denominator`, rounded half to even once, at the end."""
    quotient, rest = divmod(pico * numerator, denominator)
    twice = 2 * rest
    if twice > denominator or (twice == denominator and quotient % 2):
        return quotient + 1
    return quotient
