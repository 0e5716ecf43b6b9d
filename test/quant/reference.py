"""Statistics of random return series by NumPy, SciPy and quantstats, as JSON on stdout."""

import json
import math

import numpy as np
import pandas as pd
import quantstats.stats as qs
from scipy import stats

EULER = np.euler_gamma


def sharpe_error(returns: np.ndarray, sharpe: float) -> float:
    """Mertens 2002: skewness and kurtosis of the sample, as scipy.stats has them without bias correction."""
    skewness = stats.skew(returns)
    kurtosis = stats.kurtosis(returns, fisher=False)
    return math.sqrt(1 - skewness * sharpe + (kurtosis - 1) / 4 * sharpe**2)


def series_of(rng: np.random.Generator, index: int) -> np.ndarray:
    size = int(rng.integers(12, 120))
    if index % 3 == 0:
        return rng.normal(0.0005, 0.01, size)
    if index % 3 == 1:
        return rng.standard_t(4, size) * 0.01
    return rng.exponential(0.01, size) - 0.0095


def facts_of(returns: np.ndarray, trials: list[float]) -> dict:
    dates = pd.date_range("2026-01-01", periods=len(returns) + 1)
    indexed = pd.Series(returns, index=dates[1:])
    values = np.concatenate([[1.0], np.cumprod(1 + returns)])
    sharpe = float(qs.sharpe(indexed, annualize=False))
    error = sharpe_error(returns, sharpe)
    spread = max(float(np.std(trials, ddof=1)), 1 / math.sqrt(len(returns) - 1))
    count = len(trials)
    best = spread * (
        (1 - EULER) * stats.norm.ppf(1 - 1 / count) + EULER * stats.norm.ppf(1 - 1 / (count * math.e))
    )
    peaks = np.maximum.accumulate(values)
    return {
        "returns": returns.tolist(),
        "trials": trials,
        "mean": float(np.mean(returns)),
        "deviation": float(np.std(returns, ddof=1)),
        "sharpe": sharpe,
        "annualSharpe": float(qs.sharpe(indexed, periods=252)),
        "maxDrawdown": -float(qs.max_drawdown(pd.Series(values, index=dates))),
        "underWater": float(np.mean(values < peaks)),
        "quantiles": {str(p): float(np.quantile(returns, p)) for p in (0.05, 0.25, 0.5, 0.95)},
        "probabilisticSharpe": float(stats.norm.cdf(sharpe * math.sqrt(len(returns) - 1) / error)),
        "expectedMaxSharpe": float(best),
        "deflatedSharpe": float(stats.norm.cdf((sharpe - best) * math.sqrt(len(returns) - 1) / error)),
        "minTrackRecord": float(1 + (error * stats.norm.ppf(0.95) / sharpe) ** 2) if sharpe > 0 else None,
    }


def main() -> None:
    rng = np.random.default_rng(7)
    series = [
        facts_of(series_of(rng, index), rng.normal(0, 0.1, int(rng.integers(2, 40))).tolist()) for index in range(9)
    ]
    shares = []
    for met, trials in [(0, 10), (3, 10), (57, 100), (100, 100), (1, 5000)]:
        interval = stats.binomtest(met, trials).proportion_ci(method="wilson")
        shares.append({"met": met, "trials": trials, "low": float(interval.low), "high": float(interval.high)})
    points = [-12.0, -8.3, -5.0, -3.1, -3.0, -2.9, -1.0, -1e-9, 0.0, 0.3, 1.96, 3.0, 3.1, 7.0, 40.0]
    chances = [1e-9, 1e-4, 0.025, 0.3, 0.5, 0.7, 0.95, 0.999, 1 - 1e-7]
    print(
        json.dumps(
            {
                "series": series,
                "shares": shares,
                "cdf": [[x, float(stats.norm.cdf(x))] for x in points],
                "quantile": [[p, float(stats.norm.ppf(p))] for p in chances],
            }
        )
    )


main()
