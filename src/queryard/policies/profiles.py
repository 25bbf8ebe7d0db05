"""The published schedulers, and some new ones, as data: one line of parts each.

Keys left out take the defaults of `compose`: fifo, jobs by submission, open slots, tasks local
to a node first, no shared scans, a cluster of fixed size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Profile = Mapping[str, Any]

# POSUM §5.3.2: the share of the slots, or of the turns, that deadlines get.
DELTA = 0.7

BASELINES: tuple[Profile, ...] = (
    {
        "name": "fifo",
        "summary": "Queries one after another, as they were submitted.",
        "citation": "TuMM §3",
        "order": "fifo",
    },
    {
        "name": "priority",
        "summary": "The more important query first, then as submitted.",
        "citation": "POSUM §2.3",
        "order": "priority",
    },
    {
        "name": "fair",
        "summary": "Slots shared evenly between jobs, as Hadoop's fair scheduler does.",
        "citation": "TLS §2 (HFS)",
        "order": "fair-jobs",
    },
    {
        "name": "query-fair",
        "summary": "Slots shared evenly between queries, whatever their number of jobs.",
        "citation": "ReLAQS §6 (resource-fair)",
        "order": "fair",
    },
    {
        "name": "hierarchical",
        "summary": "Slots shared between tenants by weight, guarantee and cap, then by query.",
        "citation": "TLS §2 (pools of HFS)",
        "pools": {"by": "tenant", "default": {"order": "fair"}},
    },
    {
        "name": "capacity",
        "summary": "A queue for each tenant and jobs in the order they became ready in each.",
        "citation": "TLS §2 (HCS)",
        "pools": {"by": "tenant", "default": {"order": "fifo-jobs"}},
    },
    {
        "name": "edf",
        "summary": "The earliest deadline first, queries without one last.",
        "citation": "POSUM §4.3.1",
        "order": "edf",
    },
    {
        "name": "largest-slowdown",
        "summary": "The query first that has waited longest for its size.",
        "citation": "POSUM §4.3.1 (LSF)",
        "order": "largest-slowdown",
    },
    {
        "name": "hlfet",
        "summary": "Queries as submitted; of their jobs that on the longest path first.",
        "citation": "TLS §4.2 (HLFET)",
        "jobs": "hlfet",
    },
    {
        "name": "static",
        "summary": "As many slots for maps as for reduces on each node, fixed.",
        "citation": "TuMM §2",
        "slots": "static",
    },
    {
        "name": "static-1-3",
        "summary": "One slot for maps to three for reduces, fixed.",
        "citation": "TuMM §2",
        "slots": {"name": "static", "maps": 1, "reduces": 3},
    },
    {
        "name": "static-3-1",
        "summary": "Three slots for maps to one for reduces, fixed.",
        "citation": "TuMM §2",
        "slots": {"name": "static", "maps": 3, "reduces": 1},
    },
    {
        "name": "mrshare",
        "summary": "Queries that scan one table wait for each other and share one scan.",
        "citation": "S³ §II (MRShare)",
        "sharing": "mrshare",
    },
)

PUBLISHED: tuple[Profile, ...] = (
    {
        "name": "swrd",
        "summary": "The query with the least work left first.",
        "citation": "TLS §4.1.2 (SWRD)",
        "order": "swrd",
    },
    {
        "name": "dfa",
        "summary": "Queries as submitted; of their jobs the deepest first.",
        "citation": "TLS §4.2 (DFA)",
        "jobs": "dfa",
    },
    {
        "name": "lodfa",
        "summary": "Queries as submitted; of their jobs those first that read the same table.",
        "citation": "TLS §4.2, Alg. 2 (LoDFA)",
        "jobs": "lodfa",
    },
    {
        "name": "tls",
        "summary": "Small queries first unless others are slowed too much; shared inputs together.",
        "citation": "TLS §4, Alg. 1 and 2",
        "order": "qef",
        "jobs": "lodfa",
    },
    {
        "name": "tls-dfa",
        "summary": "TLS without its regard for shared inputs: the deepest job first.",
        "citation": "TLS §4.2 (DFA)",
        "order": "qef",
        "jobs": "dfa",
    },
    {
        "name": "srtf",
        "summary": "Slots in inverse proportion to remaining work, corrected for starvation.",
        "citation": "POSUM §5.3.2 (SRTF)",
        "order": "srtf",
    },
    {
        "name": "locf",
        "summary": "Queries as submitted, passed over for a while where their data is not.",
        "citation": "POSUM §5.3.2 (LOCF)",
        "placement": "locf",
    },
    {
        "name": "edls-sh",
        "summary": "Slots reserved for deadlines (0.7) and for batch (0.3); neither borrows.",
        "citation": "POSUM §4.3.1 (EDLS-Sh)",
        "pools": {
            "by": "deadline",
            "children": {
                "deadline": {"order": "edf", "cap": DELTA},
                "batch": {"order": "largest-slowdown", "cap": 1 - DELTA},
            },
        },
    },
    {
        "name": "edls-sh-borrow",
        "summary": "As edls-sh, with guarantees in place of caps: each part borrows idle slots.",
        "citation": "POSUM §4.3.1 (EDLS-Sh, as two queues of YARN's Capacity Scheduler)",
        "pools": {
            "by": "deadline",
            "children": {
                "deadline": {"order": "edf", "guarantee": DELTA, "weight": DELTA},
                "batch": {
                    "order": "largest-slowdown",
                    "guarantee": 1 - DELTA,
                    "weight": 1 - DELTA,
                },
            },
        },
    },
    {
        "name": "edls-pr",
        "summary": "Every slot is drawn: deadlines first with probability 0.7, else batch.",
        "citation": "POSUM §4.3.1 (EDLS-Pr)",
        "pools": {
            "by": "deadline",
            "choice": "lottery",
            "children": {
                "deadline": {"order": "edf", "weight": DELTA},
                "batch": {"order": "largest-slowdown", "weight": 1 - DELTA},
            },
        },
    },
    {
        "name": "best-static",
        "summary": "The best fixed number of map slots for the work that is known.",
        "citation": "TuMM §3.2, Alg. 1",
        "slots": "best-static",
    },
    {
        "name": "tumm",
        "summary": "Map and reduce slots follow the work that is left of each kind.",
        "citation": "TuMM §4, Alg. 2 and 3",
        "slots": "tumm",
    },
    {
        "name": "h-tumm",
        "summary": "As tumm, but each node follows its own speed.",
        "citation": "TuMM §5.2, Alg. 4",
        "slots": "h-tumm",
    },
    {
        "name": "s3",
        "summary": "Queries that scan one table join its circular scan where it is.",
        "citation": "S³ §IV",
        "sharing": "circular",
    },
    {
        "name": "relaqs",
        "summary": "Online queries by what their answers will gain, beside exact ones.",
        "citation": "ReLAQS §4.7, Alg. 1",
        "pools": {
            "by": "kind",
            "children": {
                "exact": {"order": "fair", "weight": "queries"},
                "online": {"order": "progress", "weight": "queries"},
            },
        },
    },
)

NEW: tuple[Profile, ...] = (
    {
        "name": "marshal",
        "summary": "Tenants take turns; in each, small queries soon and large ones in their time.",
        # Slots that are held have a quantum's advance, and one that is given counts for a quantum
        # beforehand: with a credit of 2 a small query beside large ones gets one slot of two.
        "pools": {
            "by": "tenant",
            "choice": "turns",
            "credit": 4.0,
            "default": {"order": "srpt-fair"},
        },
        "sharing": {"name": "circular", "when": "pays"},
    },
    {
        "name": "cost-of-delay",
        "summary": "The query first of which the delay costs most per second of its work.",
        "order": "cost-of-delay",
        "jobs": "lodfa",
        "slots": "reserve-short",
    },
    {
        "name": "tls-circular",
        "summary": "TLS picks the query, and all queries that scan its table ride along.",
        "order": "qef",
        "jobs": "lodfa",
        "sharing": "circular",
    },
    {
        "name": "s3-pays",
        "summary": "As s3, but queries share a scan only while that takes less than scans apart.",
        "sharing": {"name": "circular", "when": "pays"},
    },
    {
        "name": "tls-circular-htumm",
        "summary": "As tls-circular, with map and reduce slots that follow the work on each node.",
        "order": "qef",
        "jobs": "lodfa",
        "slots": "h-tumm",
        "sharing": "circular",
    },
    {
        "name": "deadline-first",
        "summary": "Deadlines are guaranteed 0.7 of the slots; slots they leave idle go to batch.",
        "pools": {
            "by": "deadline",
            "children": {
                "deadline": {"order": "edf", "guarantee": DELTA},
                "batch": {"order": "swrd"},
            },
        },
        "jobs": "lodfa",
    },
    {
        "name": "tenant-tls",
        "summary": "Fair between tenants, TLS between the queries of each.",
        "pools": {"by": "tenant", "default": {"order": "qef"}},
        "jobs": "lodfa",
    },
    {
        "name": "online-rounds",
        "summary": "Online queries go round their tables together; exact ones beside them, fairly.",
        "pools": {
            "by": "kind",
            "children": {
                "exact": {"order": "fair", "weight": "queries"},
                "online": {"order": "rounds", "weight": "queries"},
            },
        },
        "sharing": {"name": "circular", "when": "pays"},
    },
    {
        "name": "online-tls",
        "summary": "Online queries by what their answers will gain, exact ones by TLS.",
        "pools": {
            "by": "kind",
            "children": {
                "exact": {"order": "qef", "weight": "queries"},
                "online": {"order": "progress", "weight": "queries"},
            },
        },
        "jobs": "lodfa",
    },
)

PROFILES: dict[str, Profile] = {
    profile["name"]: {"origin": origin, **profile}
    for origin, group in (("baseline", BASELINES), ("paper", PUBLISHED), ("new", NEW))
    for profile in group
}

# Names that profiles had before, in files and journals, and the names they have now.
FORMER_PROFILES = {"dearest": "cost-of-delay"}
