"""Secrets that are known by their own form: vendors' keys, tokens, password hashes.

The forms are the vendors' published ones. Every expression takes linear time: none nests or overlaps
repetitions, and one that begins anywhere in a long word looks no further than its bounds.
"""

from collections.abc import Iterator
from typing import Final

from superbizagent.adapters.redaction.spans import Detector, Find, Span, Subject, matching
from superbizagent.domain.pattern import Pattern

_BEGIN: Final = r"(?<![A-Za-z0-9\\])"
# A word also begins after an escape, which ends in a letter or a digit: `\nAKIA…`, `%3DAKIA…`.
_BEGIN_ESCAPED: Final = (
    r"(?:(?<=\\)(?![nrtbfux])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\x[0-9A-Fa-f]{2}))"
)
_END: Final = r"(?![A-Za-z0-9])"
# None is shorter; most words are, and need no look at all the forms.
_LONG: Final = r"(?=[A-Za-z0-9$][A-Za-z0-9_.:$~/+=-]{15})"

_CLOUD_KEYS: Final = (
    rf"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{{16}}{_END}",
    r"(?:FwoGZXIvYXdz|IQoJb3JpZ2lu)[A-Za-z0-9/+=%]{16,}",
    r"ABSK[A-Za-z0-9+/]{100,}={0,2}",
    r"LTAI[A-Za-z0-9]{12,26}" + _END,
    r"AKID[A-Za-z0-9]{28,40}" + _END,
    r"AKLT[A-Za-z0-9_-]{20,80}",
    r"AIza[A-Za-z0-9_-]{30,60}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"GOCSPX-[A-Za-z0-9_-]{20,60}",
    r"1//0[A-Za-z0-9_-]{30,}",
    r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
    r"do[oprt]_v1_[a-f0-9]{32,64}",
    r"dapi[a-f0-9]{32}(?:-\d)?" + _END,
    r"FlyV1 fm\d_[A-Za-z0-9+/=,_-]{40,}|fm[12][ar]?_[A-Za-z0-9+/=,_-]{60,}",
    r"HRKU-[A-Za-z0-9_-]{30,80}",
    r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9=._-]{20,80}",
    r"sb[ps]_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,80}",
    r"nfp_[A-Za-z0-9]{30,60}|npg_[A-Za-z0-9]{10,40}|rnd_[A-Za-z0-9]{20,60}|vc[pka]_[A-Za-z0-9]{20,80}",
    r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,200}",
)
_CODE_KEYS: Final = (
    r"gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255}",
    r"gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas|ffct|wt)-[A-Za-z0-9_.-]{16,1024}|GR1348941[A-Za-z0-9_-]{16,60}",
    r"ATATT3[A-Za-z0-9_=-]{40,}|ATCTT3[A-Za-z0-9_=-]{40,}|ATBB[A-Za-z0-9]{24,60}",
    r"npm_[A-Za-z0-9]{30,60}|pypi-[A-Za-z0-9_-]{30,}|rubygems_[a-f0-9]{40,60}|oy2[a-z0-9]{43}" + _END,
    r"dckr_[po]at_[A-Za-z0-9_-]{20,60}|AKCp[A-Za-z0-9]{50,}|cmVmdGtu[A-Za-z0-9]{40,}",
    r"sq[apu]_[A-Za-z0-9]{32,60}|sgp_[A-Za-z0-9_]{30,80}|bk[a-z]{2}_[a-z0-9]{40}|CCIPAT_[A-Za-z0-9_]{30,100}",
    r"snyk_[a-z]{2,4}\.[A-Za-z0-9._-]{30,}",
    r"hv[sbr]\.[A-Za-z0-9_-]{20,}",
    r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,90}",
    r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{30,80}|pul-[a-f0-9]{40}|AGE-SECRET-KEY-1[A-Z0-9]{50,70}",
    r"ops_eyJ[A-Za-z0-9+/=_-]{40,}|A3-[A-Z0-9]{6}-[A-Z0-9-]{11,17}-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}",
)
_SERVICE_KEYS: Final = (
    r"xox[abceoprs]-[A-Za-z0-9-]{10,255}|xapp-[A-Za-z0-9-]{10,255}|xoxe\.[A-Za-z0-9.-]{20,255}",
    r"sk-[A-Za-z0-9_-]{16,255}|gsk_[A-Za-z0-9]{20,100}|xai-[A-Za-z0-9]{20,120}|pplx-[A-Za-z0-9]{20,80}",
    r"r8_[A-Za-z0-9]{30,60}|hf_[A-Za-z0-9]{20,100}|fw_[A-Za-z0-9]{20,60}|tgp_v1_[A-Za-z0-9_-]{20,80}",
    r"(?:sk|pk|rk)_(?:live|test|prod)_[A-Za-z0-9]{16,255}|whsec_[A-Za-z0-9+/=]{16,255}",
    r"sq0[a-z]{3}-[A-Za-z0-9_-]{20,60}|access_token\$(?:production|sandbox)\$[A-Za-z0-9]{16}\$[a-f0-9]{32}",
    r"shp(?:at|ss|ca|pa|tka)_[A-Fa-f0-9]{32}|access-(?:sandbox|development|production)-[0-9a-f-]{36}",
    r"SK[0-9a-f]{32}" + _END,
    r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}|key-[0-9a-f]{32}" + _END,
    r"[0-9a-f]{32}-us[0-9]{1,2}" + _END,
    r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}|re_[A-Za-z0-9]{6,12}_[A-Za-z0-9]{16,40}",
    r"glsa_[A-Za-z0-9]{30,60}_[A-Fa-f0-9]{8}|glc_[A-Za-z0-9+/=]{32,400}",
    r"NR(?:AK|JS|II|IQ|AL|AA)-[A-Za-z0-9_-]{20,60}|sntry[su]_[A-Za-z0-9+/=_-]{40,400}",
    r"lin_(?:api|oauth)_[A-Za-z0-9]{30,80}|ntn_[A-Za-z0-9]{30,60}|secret_[A-Za-z0-9]{43}" + _END,
    r"figd_[A-Za-z0-9_-]{30,60}|pat[A-Za-z0-9]{14}\.[a-f0-9]{64}|PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
    r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}|(?:sdk|mob|api)-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f-]{17}",
    r"pat-(?:na|eu|ap)[0-9]-[0-9a-f-]{36}|CFPAT-[A-Za-z0-9_-]{40,50}|pnu_[A-Za-z0-9]{30,40}|tfp_[A-Za-z0-9_.=-]{40,80}",
    r"shippo_(?:live|test)_[a-f0-9]{40}|duffel_(?:live|test)_[A-Za-z0-9_=-]{40,50}|EZ[AT]K[a-f0-9A-Z]{30,60}",
    r"FLWSECK(?:_TEST)?-[A-Za-z0-9-]{20,60}|CLOJARS_[a-z0-9]{60}|sl\.[A-Za-z0-9_-]{100,}|EAA[A-Za-z0-9]{30,}|tskey-[a-z]{2,10}-[A-Za-z0-9]{8,30}-[A-Za-z0-9]{16,60}",
    r"pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{40,80}|tvly-[A-Za-z0-9-]{24,80}|ph[xcs]_[A-Za-z0-9]{40,60}|nvapi-[A-Za-z0-9_-]{40,90}",
    r"jina_[A-Za-z0-9]{50,80}|e2b_[a-f0-9]{40,60}|lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{8,12}|sk_[a-f0-9]{48}|rpa_[A-Z0-9]{40,60}",
    r"[A-Za-z0-9_-]{11,22}:APA91b[A-Za-z0-9_-]{100,}|xoxd-[A-Za-z0-9%+/=_-]{20,255}|hcai[km]_[a-z0-9]{50,70}",
    r"mlsn\.[a-f0-9]{64}|AVNS_[A-Za-z0-9_-]{16,40}|dbt[cu]_[A-Za-z0-9_=-]{30,80}|xau_[A-Za-z0-9]{40,60}|ctx7sk-[a-f0-9-]{32,40}",
    r"fc-[a-f0-9]{32}|EXO[a-f0-9]{24}|K00[0-9][A-Za-z0-9+/]{27}|cf[ua]t_[A-Za-z0-9]{30,60}|napi_[a-z0-9]{50,80}",
    r"y0_[A-Za-z0-9_-]{40,80}|AQVN[A-Za-z0-9_-]{35,38}",
    r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,36}",
    r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}",
)
# In the manner of these vendors: `acme_live_4eC39HqLyjWDarjtT1zd`.
_ALIKE: Final = (
    # Large and small letters and digits: a name is never like that.
    rf"[a-z][a-z0-9]{{1,12}}_(?:live|test|prod|secret|pat|key|sk|token)_(?=[a-z0-9]*[A-Z])(?=[A-Z0-9]*[a-z])(?=[A-Za-z]*[0-9])[A-Za-z0-9]{{16,255}}{_END}",
)
_TOKENS: Final = (
    r"eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*){0,3}",
    # Cut before its first full stop; the heads of `{"alg":` and `{"typ":`.
    r"eyJ(?:hbGciO|0eXAiO)[A-Za-z0-9_-]{10,}",
)
_HASHES: Final = (
    r"\$(?:2[abxy]?|1|5|6|7|y|gy|apr1|argon2(?:id|i|d)|scrypt|pbkdf2[a-z0-9-]{0,16}|P|H)\$[A-Za-z0-9./+=,$@_-]{20,400}",
)
_KINDS: Final = {
    "cloud": (_CLOUD_KEYS, "cloud-key"),
    "code": (_CODE_KEYS, "code-key"),
    "service": (_SERVICE_KEYS, "api-key"),
    "alike": (_ALIKE, "api-key"),
    "token": (_TOKENS, "jwt"),
    "hash": (_HASHES, "password-hash"),
}
_ANY: Final = "|".join(f"(?P<{name}>{'|'.join(forms)})" for name, (forms, _) in _KINDS.items())
_PLAIN: Final = Pattern(f"{_BEGIN}{_LONG}(?:{_ANY})")
_ESCAPED: Final = Pattern(f"{_BEGIN_ESCAPED}{_LONG}(?:{_ANY})")


def _find(pattern: Pattern) -> Find:
    def find(subject: Subject) -> Iterator[Span]:
        for match in pattern.finditer(subject.text):
            yield Span(match.start(), match.end(), _KINDS[match.lastgroup or ""][1])

    return find


_HOOKS: Final = Pattern(
    r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/\d{1,25}/"
    r"|webhook\.office\.com/webhookb2/|open-apis/bot/v2/hook/|webhook/send\?key=|outlook\.office\.com/webhook/"
    r"|hooks\.zapier\.com/hooks/catch/|chat\.googleapis\.com/v1/spaces/|api\.telegram\.org/bot)"
    r"(?P<secret>[A-Za-z0-9/_@:.+%=-]{16,400})"
)
_LDAP_HASH: Final = Pattern(r"(?P<secret>\{S?SHA(?:256|512)?\}[A-Za-z0-9+/=]{20,200})")

DETECTORS: Final = (
    Detector(_find(_PLAIN)),
    Detector(_find(_ESCAPED), ("\\", "%")),
    Detector(matching(_HOOKS, kind="web-hook"), ("hook", "googleapis.com", "api.telegram.org")),
    Detector(matching(_LDAP_HASH, kind="password-hash"), ("sha}", "sha256}", "sha512}")),
)
