"""Configurations with one mistake each: the line on which it is, and what is said of it."""

from typing import Final, NamedTuple

HEADER: Final = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class Faulty(NamedTuple):
    """One of them."""

    text: str
    line: int
    problem: str
    """What the problem begins with, behind file and line."""


def _body(body: str, line: int, problem: str) -> Faulty:
    """After the header, whose two lines count."""
    return Faulty(HEADER + body, line, problem)


def _profile(body: str, line: int, problem: str) -> Faulty:
    """Within the only profile, whose first line is the fourth of the file."""
    lines = body.splitlines()
    indented = [f"  - {lines[0]}", *(f"    {each}" for each in lines[1:])]
    return _body("profiles:\n" + "\n".join(indented) + "\n", line, problem)


def _args(plugin: str, args: str, line: int, problem: str) -> Faulty:
    """Arguments of a plugin, whose first line is the seventh of the file."""
    lines = "\n".join(f"      {each}" for each in args.splitlines())
    path = "profiles[0].pluginConfig[0].args"
    return _profile(f"pluginConfig:\n  - name: {plugin}\n    args:\n{lines}", line, f"{path}{problem}")


def _filter(body: str, line: int, problem: str) -> Faulty:
    """Within the set of Filter plugins, whose first line is the sixth of the file."""
    lines = "\n".join(f"    {each}" for each in body.splitlines())
    return _profile(f"plugins:\n  filter:\n{lines}", line, f"profiles[0].plugins.filter{problem}")


_V1: Final = "kubescheduler.config.k8s.io/v1"

FAULTY: Final[tuple[Faulty, ...]] = (
    # No text, no YAML, no configuration.
    Faulty(HEADER + "profiles: [\n", 4, "did not find expected node content"),
    Faulty(HEADER + "profiles:\n\t- x\n", 4, "found character that cannot start any token"),
    Faulty(HEADER + "parallelism: 1\nparallelism: 2\n", 4, "the key 'parallelism' is there twice"),
    _profile(
        "plugins:\n  queueSort:\n    enabled: [{name: NodeName}]\n    disabled: [{name: '*'}]",
        6,
        'profiles[0].plugins.queueSort.enabled[0]: Invalid value: "NodeName": this plugin does not extend queueSort '
        "here, and need not: leave out plugins.queueSort",
    ),
    Faulty("- a\n- b\n", 1, "expected a mapping"),
    Faulty("just text\n", 1, "expected a mapping"),
    Faulty("kind: KubeSchedulerConfiguration\n", 1, f"apiVersion: expected {_V1}, got none"),
    Faulty(f"apiVersion: {_V1}\n", 1, "kind: expected KubeSchedulerConfiguration, got none"),
    Faulty(f"# first\napiVersion: {_V1}\nkind: Pod\n", 3, "kind: expected KubeSchedulerConfiguration, got 'Pod'"),
    Faulty("apiVersion: v1\nkind: KubeSchedulerConfiguration\n", 1, f"apiVersion: expected {_V1}, got 'v1'"),
    Faulty(
        "kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1beta3\n",
        2,
        "apiVersion: kubescheduler.config.k8s.io/v1beta3 was removed",
    ),
    Faulty("kind: KubeSchedulerConfiguration\napiVersion: 1\n", 2, f"apiVersion: expected {_V1}, got 1"),
    # Fields of the whole.
    _body("paralelism: 3\n", 3, "paralelism: unknown field; did you mean 'parallelism'?"),
    _body("algorithmSource: {provider: x}\n", 3, "algorithmSource: unknown field"),
    _body("healthzBindAddress: 0.0.0.0\n", 3, "healthzBindAddress: unknown field"),
    _body("parallelism: 0\n", 3, "parallelism: Invalid value: 0: should be an integer value greater than zero"),
    _body("parallelism: many\n", 3, "parallelism: expected int, got 'many'"),
    _body("parallelism: true\n", 3, "parallelism: expected int, got true"),
    _body("parallelism: 99999999999999999999\n", 3, "parallelism: 99999999999999999999 does not fit into 64 bits"),
    _body(
        "percentageOfNodesToScore: 101\n", 3, "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"
    ),
    _body("percentageOfNodesToScore: 50%\n", 3, "percentageOfNodesToScore: expected int, got '50%'"),
    _body("podInitialBackoffSeconds: 0\n", 3, "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"),
    _body(
        "podInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 4\n",
        4,
        "podMaxBackoffSeconds: Invalid value: 4: must be greater than or equal to PodInitialBackoffSeconds",
    ),
    _body("podMaxBackoffSeconds: 10s\n", 3, "podMaxBackoffSeconds: expected int, got '10s'"),
    _body("enableProfiling: 1\n", 3, "enableProfiling: expected bool, got 1"),
    _body("delayCacheUntilActive: []\n", 3, "delayCacheUntilActive: expected bool, got a list"),
    _body("profiles: {}\n", 3, "profiles: expected a list"),
    _body("extenders: {}\n", 3, "extenders: expected a list"),
    # Leader election.
    _body("leaderElection: true\n", 3, "leaderElection: expected a mapping, got true"),
    _body("leaderElection:\n  leaderElect: maybe\n", 4, "leaderElection.leaderElect: expected bool, got 'maybe'"),
    _body("leaderElection:\n  leaseDuration: 15\n", 4, "leaderElection.leaseDuration: expected a duration"),
    _body("leaderElection:\n  leaseDuration: 15 s\n", 4, "leaderElection.leaseDuration: not a duration"),
    _body(
        "leaderElection:\n  leaseDuration: 5s\n",
        4,
        'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
    ),
    _body("leaderElection:\n  renewDeadline: 2s\n", 4, "leaderElection.renewDeadline: Invalid value"),
    _body(
        "leaderElection:\n  retryPeriod: -1s\n",
        4,
        'leaderElection.retryPeriod: Invalid value: "-1s": must be greater than zero',
    ),
    _body(
        "leaderElection:\n  resourceLock: endpoints\n",
        4,
        'leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
    ),
    _body("leaderElection:\n  resourceNam: x\n", 4, "leaderElection.resourceNam: unknown field"),
    _body("leaderElection:\n  resourceName: [x]\n", 4, "leaderElection.resourceName: expected string, got a list"),
    # The connection, and what is ours.
    _body("clientConnection:\n  burst: -1\n", 4, "clientConnection.burst: Invalid value: -1: must be non-negative"),
    _body("clientConnection:\n  qps: fast\n", 4, "clientConnection.qps: expected number, got 'fast'"),
    _body("clientConnection:\n  qps: .inf\n", 4, "clientConnection.qps: expected a finite number, got inf"),
    _body("clientConnection:\n  kubeconfig: 5\n", 4, "clientConnection.kubeconfig: expected string, got 5"),
    _body("clientConection: {}\n", 3, "clientConection: unknown field; did you mean 'clientConnection'?"),
    _body("loadmaster:\n  seed: x\n", 4, "loadmaster.seed: expected int, got 'x'"),
    _body("loadmaster:\n  resyncSeconds: -1\n", 4, "loadmaster.resyncSeconds: Invalid value: -1"),
    _body(
        "loadmaster:\n  bindTimeoutSeconds: 0\n",
        4,
        "loadmaster.bindTimeoutSeconds: Invalid value: 0: must be greater than 0",
    ),
    _body(
        "loadmaster:\n  assumedPodTTLSeconds: -1\n",
        4,
        "loadmaster.assumedPodTTLSeconds: Invalid value: -1: must be greater than or equal to 0",
    ),
    _body(
        "loadmaster:\n  podMaxInUnschedulablePodsSeconds: 0\n",
        4,
        "loadmaster.podMaxInUnschedulablePodsSeconds: Invalid value: 0",
    ),
    _body("loadmaster:\n  topologyLevels: [a, b, a]\n", 4, 'loadmaster.topologyLevels[2]: Duplicate value: "a"'),
    _body(
        "loadmaster:\n  topologyLevels: [a, '']\n", 4, "loadmaster.topologyLevels[1]: Required value: a label of nodes"
    ),
    _body(
        f"loadmaster:\n  topologyLevels: {[f'level-{number}' for number in range(17)]}\n",
        4,
        "loadmaster.topologyLevels: Invalid value: 17: must have at most 16 levels",
    ),
    _body(
        "loadmaster:\n  topologyLevels: [a, rack no. 7]\n",
        4,
        'loadmaster.topologyLevels[1]: Invalid value: "rack no. 7": name part must consist of',
    ),
    _body("loadmaster:\n  resync: 3\n", 4, "loadmaster.resync: unknown field"),
    # Profiles.
    _body("profiles:\n  - x\n", 4, "profiles[0]: expected a mapping, got 'x'"),
    _body("profiles:\n  - schedulerName: a\n  - {}\n", 5, "profiles[1].schedulerName: Required value"),
    _body("profiles:\n  - schedulerName: a\n  - schedulerName: a\n", 5, "profiles[1].schedulerName: Duplicate value"),
    _profile("schedulerName: ''", 4, "profiles[0].schedulerName: Required value"),
    _profile("schedulerName: 7", 4, "profiles[0].schedulerName: expected string, got 7"),
    _profile("schedulerNam: x", 4, "profiles[0].schedulerNam: unknown field; did you mean 'schedulerName'?"),
    _profile("percentageOfNodesToScore: 200", 4, "profiles[0].percentageOfNodesToScore: Invalid value: 200"),
    _profile("plugins: []", 4, "profiles[0].plugins: expected a mapping, got a list"),
    _profile("plugins:\n  filters: {}", 5, "profiles[0].plugins.filters: unknown field; did you mean 'filter'?"),
    _profile("plugins:\n  filter: [NodeName]", 5, "profiles[0].plugins.filter: expected a mapping, got a list"),
    _profile(
        "plugins:\n  placementScore:\n    enabled: [{name: NodeName}]",
        6,
        'profiles[0].plugins.placementScore.enabled[0]: Invalid value: "NodeName"',
    ),
    _filter("enabled: NodeName", 6, ".enabled: expected a list, got 'NodeName'"),
    _filter("enabled:\n  - NodeName", 7, ".enabled[0]: expected a mapping, got 'NodeName'"),
    _filter("enabled:\n  - {name: NodeName, weigt: 1}", 7, ".enabled[0].weigt: unknown field; did you mean 'weight'?"),
    _filter("enabled:\n  - name: NodeNam", 7, ".enabled[0]: unknown plugin \"NodeNam\"; did you mean 'NodeName'?"),
    _filter(
        "enabled:\n  - name: ImageLocality",
        7,
        '.enabled[0]: Invalid value: "ImageLocality": this plugin does not extend filter: leave it out here',
    ),
    _filter("enabled:\n  - name: NodeName\n  - name: NodeName", 8, '.enabled[1]: Duplicate value: "NodeName"'),
    _filter(
        "enabled:\n  - name: EBSLimits",
        7,
        f'.enabled[0]: Invalid value: "EBSLimits": was invalid in version "{_V1}"',
    ),
    _filter("disabled:\n  - name: NodeNme", 7, ".disabled[0]: unknown plugin \"NodeNme\"; did you mean 'NodeName'?"),
    _filter("disable: []", 6, ".disable: unknown field; did you mean 'disabled'?"),
    _profile(
        "plugins:\n  score:\n    enabled:\n      - name: NodeAffinity\n        weight: 4294967296",
        8,
        "profiles[0].plugins.score.enabled[0].weight: Invalid value: 4294967296: does not fit into 32 bits",
    ),
    _profile(
        "plugins:\n  score:\n    enabled:\n      - name: NodeAffinity\n        weight: heavy",
        8,
        "profiles[0].plugins.score.enabled[0].weight: expected int, got 'heavy'",
    ),
    _profile(
        "plugins:\n  queueSort:\n    disabled: [{name: '*'}]",
        5,
        "profiles[0].plugins.queueSort: Invalid value: []: only one queue sort plugin required, but got 0",
    ),
    _profile(
        "plugins:\n  bind:\n    disabled: [{name: '*'}]",
        5,
        "profiles[0].plugins.bind: Required value: at least one bind plugin is needed",
    ),
    # Arguments of plugins.
    _profile("pluginConfig: {}", 4, "profiles[0].pluginConfig: expected a list, got a mapping"),
    _profile("pluginConfig:\n  - args: {}", 5, "profiles[0].pluginConfig[0].name: Required value"),
    _profile(
        "pluginConfig:\n  - name: NodeAffinity\n  - name: NodeAffinity",
        6,
        'profiles[0].pluginConfig[1]: Duplicate value: "NodeAffinity"',
    ),
    _profile(
        "pluginConfig:\n  - {name: NodeName, args: []}", 5, "profiles[0].pluginConfig[0].args: expected a mapping"
    ),
    _args("NodeName", "strict: true", 7, ".strict: unknown field"),
    _args(
        "NodeAffinity",
        "kind: InterPodAffinityArgs",
        7,
        '.kind: Invalid value: "InterPodAffinityArgs": args for plugin NodeAffinity must be of type NodeAffinityArgs',
    ),
    _args("NodeAffinity", "apiVersion: v1", 7, f'.apiVersion: Invalid value: "v1": must be "{_V1}"'),
    _args("InterPodAffinity", "hardPodAffinityWeight: 101", 7, ".hardPodAffinityWeight: Invalid value: 101"),
    _args("InterPodAffinity", "hardPodAffinityWeight: -1", 7, ".hardPodAffinityWeight: Invalid value: -1"),
    _args("VolumeBinding", "bindTimeoutSeconds: -1", 7, ".bindTimeoutSeconds: Invalid value: -1"),
    _args("DefaultPreemption", "minCandidateNodesPercentage: 101", 7, ".minCandidateNodesPercentage: Invalid value"),
    _args("NodeResourcesFit", "scoringStrategy:\n  type: Most", 8, ".scoringStrategy.type: Unsupported value"),
    _args(
        "NodeResourcesFit",
        "scoringStrategy:\n  type: LeastAllocated\n  resources:\n    - name: cpu\n      weight: 0\n    - name: cpu\n"
        "      weight: 101",
        13,
        ".scoringStrategy.resources[1].weight: Invalid value: 101",
    ),
    _args(
        "PodTopologySpread",
        "defaultConstraints:\n  - maxSkew: 0\n    topologyKey: zone\n    whenUnsatisfiable: DoNotSchedule\n"
        "defaultingType: List",
        8,
        ".defaultConstraints[0].maxSkew: Invalid value: 0",
    ),
)
