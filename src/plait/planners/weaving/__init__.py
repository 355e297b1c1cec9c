"""The optimizers of the aggregates paper (Shein, Chrysanthis, Labrinidis) and one of our own, as pure
functions.

Each makes a `WeavingPlan` of a `WeavingProblem` and a seed: queries over one stream, each a window, in
trees that share partials, each tree on a node. Nothing here knows of SQL or of Spark.

| Table 1 | random | round robin | to lowest | to nodes | inserted |
|---|---|---|---|---|---|
| group only | `g-rand` | `g-rr` | `g-tl` | | |
| weave only | `w-rand` | `w-rr` | `w-tl` | `w-tn` | `w-i` |
| weave and group | `wg-rand` | `wg-rr` | `wg-tl` | `wg-tn` | `wg-i` |
| module | `non_cost_based` | `non_cost_based` | `to_lowest` | `to_nodes`, `weave_share` | `inserted` |

| paper | here |
|---|---|
| Q, q_i | `WeavingProblem.windows`, a position in it |
| N, n_j | `nodes`, a position below it |
| λ | `rate_rows_per_s` |
| t_k, E, Ω | `WovenTree`, `edges_per_s`, `overlap` |
| P, TotalCost, MaxCost | `WeavingPlan`, `total_cost`, `max_cost` |

`weave` is ours: it starts from the best of these plans and improves them, by a preference for Total Cost, for
Max Cost or for both (`weave`, `arrangement`, `improvement`).

Costs are those of Eq. 1 as it stands (`windows.tree_cost` has them exactly). Where the paper's text and its
listings differ, or the listings cannot be meant as they stand, the module of the category says what was
decided:

| slip | decided | other reading, if plans differ |
|---|---|---|
| Algorithm 2 does not stop at T ≤ N, the text does | the listing | `w-tn:text`, `wg-tn:text` |
| Algorithm 2 names pairs i = j, and pairs twice | pairs i < j | |
| Algorithm 3 does not reset WeaveCost for each query | reset | |
| Algorithm 3 has the switch inside its loops | after them | |
| Algorithm 3 weaves to "tree t_j", the text to a tree of a node | a tree of a node | |
| Algorithm 3 compares plan cost with node cost | the text: node, then total | `w-i:plan-cost`,
`wg-i:plan-cost`, `wg-i:node-cost` | | Algorithm 3 starts with the first N queries, the text with random
ones | the first | `w-i:random-start`, `wg-i:random-start` |
| Algorithms 1 and 3 count one query too many | as many as are left | |

Ties are decided by one rule everywhere (`ties`). Merging queries of identical slides before anything else,
which the paper mentions as an option, is `WeavingProblem.weave_equal_edges_first`; the paper's experiments
do not say that they use it, so it is off.
"""

from plait.planners.weaving.optimizers import OPTIMIZERS, OTHER_READINGS, Optimizer
from plait.planners.weaving.plan import WeavingPlan, WovenTree
from plait.planners.weaving.problem import WeavingProblem, checked_window
from plait.planners.weaving.weave import OWN_OPTIMIZERS, Preference, plan_weave

__all__ = [
    "OPTIMIZERS",
    "OTHER_READINGS",
    "OWN_OPTIMIZERS",
    "Optimizer",
    "Preference",
    "WeavingPlan",
    "WeavingProblem",
    "WovenTree",
    "checked_window",
    "plan_weave",
]
