"""Attacks: pure functions of what an observer saw and of what is public, never of a run or of its data.

| attack | what it needs | what it recovers |
|---|---|---|
| `recursion` | a start at zero, y⁺ = y + ρ(z − x⁺) | every x and y, exactly |
| `backward_recursion` | y⁺ = y + ρ(z − x⁺) | every x and y, the error doubling with each visit back |
| `least_squares` | every link | the paper's own: all agents' x and y at once |
| `telescope` | x⁰ = y⁰/ρ | x − y/ρ, exactly; ∇f_i(x*) in the end |
| `forward_filter` | x⁰ = y⁰/ρ | x and y, the error halving with each visit |
| `parametric_step_size` | exact steps, quadratic f_i | H, g, every x and y under a scalar γ |
| `parametric_first_order` | first-order steps, f_i of a known family | θ, such as H and g or single records; every x and y |
| `parametric_primal` | quadratic f_i | H, g, every x and y under primal noise |
| `vector_gamma` | exact steps, quadratic f_i | estimates of H and g, and y, where γ is a vector |
| `at_rest` | quadratic f_i | H, where a token is held still until noise has faded |
| `share_at_the_start` | a sealed start, all others | ∇f_i(0), to the grid of the sum |
| `difference_of_words` | laps of sums, every mask of the agent | every answer, to the grid |
| `mean_of_the_honest` | laps of sums | the mean answer of those who do not collude |

All but `least_squares`, which is not of one agent, are entered in the register. Every audit and every privacy meter runs
what stands there.
"""

from roundelay.privacy.attacks.at_rest import at_rest as at_rest
from roundelay.privacy.attacks.families import (
    Family as Family,
    LogisticRecords as LogisticRecords,
    Quadratics as Quadratics,
)
from roundelay.privacy.attacks.lap_sums import (
    LapAttack as LapAttack,
    RecoveredAnswers as RecoveredAnswers,
    difference_of_words as difference_of_words,
    mean_of_the_honest as mean_of_the_honest,
)
from roundelay.privacy.attacks.least_squares import (
    SystemEstimate as SystemEstimate,
    least_squares as least_squares,
)
from roundelay.privacy.attacks.parametric_first_order import (
    parametric_first_order as parametric_first_order,
)
from roundelay.privacy.attacks.parametric_primal import (
    parametric_primal as parametric_primal,
)
from roundelay.privacy.attacks.parametric_step_size import (
    parametric_step_size as parametric_step_size,
)
from roundelay.privacy.attacks.recursions import (
    backward_recursion as backward_recursion,
    forward_filter as forward_filter,
    recursion as recursion,
    share_at_the_start as share_at_the_start,
    telescope as telescope,
)
from roundelay.privacy.attacks.setting import (
    Attack as Attack,
    Recovered as Recovered,
)
from roundelay.privacy.attacks.vector_gamma import (
    vector_gamma as vector_gamma,
)
