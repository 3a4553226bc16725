"""Light folding of English word forms and of the abbreviations operators use."""

from functools import lru_cache

from superbizagent.domain.pattern import Pattern

_VOWEL = Pattern(r"[aeiouy]")
_DOUBLED = Pattern(r"([bdfgmnprt])\1$")
# Each with the length of the shortest word left over.
_ENDINGS = (("ation", 4), ("ion", 4), ("ment", 4), ("ness", 4), ("ly", 4), ("ate", 5), ("at", 5))

# Both sides of each pair are everyday words on call; neither is a form of the other.
SAME_WORD = {
    "k8s": "kubernetes",
    "kube": "kubernetes",
    "db": "database",
    "dbs": "database",
    "cert": "certificate",
    "certs": "certificate",
    "conf": "config",
    "configs": "config",
    "configuration": "config",
    "configurations": "config",
    "configure": "config",
    "configured": "config",
    "configuring": "config",
    "misconfiguration": "misconfig",
    "misconfigured": "misconfig",
    "fs": "filesystem",
    "mem": "memory",
    "repl": "replication",
    "ns": "namespace",
    "failure": "fail",
    "failures": "fail",
    "ran": "run",
    "lost": "lose",
    "sent": "send",
    "took": "take",
    "taken": "take",
    "broken": "break",
    "broke": "break",
    "died": "die",
    "dying": "die",
    "dies": "die",
    "dead": "die",
}

# kubectl's short names (`kubectl api-resources`) that are no English words, and what else goes by its letters only.
SPELLED_OUT = {
    "cj": "CronJob",
    "cm": "ConfigMap",
    "crd": "CustomResourceDefinition",
    "csr": "CertificateSigningRequest",
    "hpa": "HorizontalPodAutoscaler",
    "ksm": "KubeStateMetrics",
    "netpol": "NetworkPolicy",
    "pdb": "PodDisruptionBudget",
    "pv": "PersistentVolume",
    "pvc": "PersistentVolumeClaim",
    "rs": "ReplicaSet",
    "sa": "ServiceAccount",
    "sts": "StatefulSet",
    "svc": "Service",
}


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """`word` (case-folded) without the endings that only change its form; others stay as they are."""
    word = SAME_WORD.get(word, word)
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    return _without_final_vowel(_without_ending(_without_tense(_singular(word))))


def _singular(word: str) -> str:
    if word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word.removesuffix("s")


def _without_tense(word: str) -> str:
    for ending in ("ing", "ed"):
        bare = word.removesuffix(ending)
        if bare != word and len(bare) >= 3 and _VOWEL.search(bare) and not word.endswith("eed"):
            return _DOUBLED.sub(r"\1", bare)
    return word


def _without_ending(word: str) -> str:
    for ending, shortest in _ENDINGS:
        bare = word.removesuffix(ending)
        if bare != word and len(bare) >= shortest:
            return bare
    return word


def _without_final_vowel(word: str) -> str:
    """Makes caching and cache, retried and retry one."""
    if len(word) > 4 and word.endswith(("e", "y", "i")):
        return word[:-1]
    return word
