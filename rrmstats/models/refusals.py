"""Methods of statsmodels' models that would ignore `eps_bar`: each says what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

LIKELIHOOD = (
    "a likelihood counts corrupted rows like others; the losses are those of problem(), and "
    "results have cov_params() and compare()"
)
REFUSED = {
    **dict.fromkeys(("loglike", "loglikeobs", "loglike_mu"), LIKELIHOOD),
    **dict.fromkeys(("score", "score_obs", "score_factor"), LIKELIHOOD),
    **dict.fromkeys(("hessian", "hessian_factor", "information"), LIKELIHOOD),
    "score_test": "a score test counts corrupted rows like others; use wald_test() of the results",
    "fit_regularized": "it would ignore eps_bar; use fit()",
    "fit_constrained": "it would ignore eps_bar; use fit() and wald_test() of the results",
    "cov_params_func_l1": "it is part of fit_regularized(); use fit() and cov_params()",
    "estimate_scale": "it counts corrupted rows like others; use scale of the results",
    "estimate_tweedie_power": (
        "it counts corrupted rows like others; fit with several var_power= and compare flags"
    ),
}


class RefusingModel:
    """A model whose subclasses refuse what they inherit from statsmodels and cannot do."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, reason in REFUSED.items():
            owner = next((kind for kind in cls.__mro__ if name in vars(kind)), None)
            if owner is not None and owner.__module__.startswith("statsmodels"):
                setattr(cls, name, _refusal(name, reason))


def _refusal(name: str, reason: str) -> Callable[..., NoReturn]:
    def method(self: Any, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} has no {name}(): {reason}")

    method.__name__ = name
    method.__doc__ = f"Refuse: {reason}."
    return method
