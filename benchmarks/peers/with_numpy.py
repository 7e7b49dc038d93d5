"""The methods as a researcher writes them first: NumPy loops, W dense."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def dgd(w: Any, h: Any, b: Any, alpha: float, rounds: int) -> Any:
    """x⁺ = Wx − α(Hx − b)."""
    x = np.zeros_like(b)
    for _ in range(rounds):
        x = w @ x - alpha * (np.einsum("npq,nq->np", h, x) - b)
    return x


def adapt_then_combine(w: Any, h: Any, b: Any, alpha: float, rounds: int) -> Any:
    """y = Wx, x⁺ = y − α(Hy − b)."""
    x = np.zeros_like(b)
    for _ in range(rounds):
        y = w @ x
        x = y - alpha * (np.einsum("npq,nq->np", h, y) - b)
    return x


def extra(w: Any, h: Any, b: Any, alpha: float, rounds: int) -> Any:
    """x^{k+2} = (I + W)x^{k+1} − ½(I + W)x^k − α(g^{k+1} − g^k)."""
    before = np.zeros_like(b)
    slope_before = np.einsum("npq,nq->np", h, before) - b
    mixed_before = w @ before
    x = mixed_before - alpha * slope_before
    for _ in range(rounds - 1):
        mixed, slope = w @ x, np.einsum("npq,nq->np", h, x) - b
        new = x + mixed - 0.5 * (before + mixed_before) - alpha * (slope - slope_before)
        before, x, mixed_before, slope_before = x, new, mixed, slope
    return x


def gradient_tracking(w: Any, h: Any, b: Any, alpha: float, rounds: int) -> Any:
    """x⁺ = Wx − αs, s⁺ = Ws + g⁺ − g."""
    x = np.zeros_like(b)
    slope = np.einsum("npq,nq->np", h, x) - b
    s = slope
    for _ in range(rounds):
        x = w @ x - alpha * s
        new = np.einsum("npq,nq->np", h, x) - b
        s, slope = w @ s + new - slope, new
    return x


def dadmm(adjacency: Any, h: Any, b: Any, c: float, rounds: int) -> Any:
    """x⁺ = (H + 2cd)⁻¹(b + c(d·x + Ax) − λ), λ⁺ = λ + c(d·x⁺ − Ax⁺)."""
    degree = np.asarray(adjacency.sum(axis=1)).reshape(-1, 1)
    inverse = np.linalg.inv(h + 2.0 * c * degree[:, :, None] * np.eye(h.shape[1]))
    x, multiplier = np.zeros_like(b), np.zeros_like(b)
    heard = adjacency @ x
    for _ in range(rounds):
        x = np.einsum("npq,nq->np", inverse, b + c * (degree * x + heard) - multiplier)
        heard = adjacency @ x
        multiplier += c * (degree * x - heard)
    return x


def methods(given: Any) -> Mapping[str, Callable[[int], Any]]:
    """All of them."""
    w, h, b, steps = given.weights, given.hessians, given.linear, given.steps
    return {
        "DGD": lambda rounds: dgd(w, h, b, steps["DGD"], rounds),
        "EXTRA": lambda rounds: extra(w, h, b, steps["EXTRA"], rounds),
        "D-ADMM": lambda rounds: dadmm(given.adjacency, h, b, steps["D-ADMM"], rounds),
        "gradient after averaging": lambda rounds: adapt_then_combine(
            w, h, b, steps["gradient after averaging"], rounds
        ),
        "gradient tracking": lambda rounds: gradient_tracking(w, h, b, steps["gradient tracking"], rounds),
    }


if __name__ == "__main__":
    from timed import main

    main(methods)
