"""Secrets that are known by the command, statement or protocol around them: `mysql -p…`, `AUTH …`."""

from typing import Final

from superbizagent.adapters.redaction.spans import Detector, matching
from superbizagent.adapters.redaction.values import has_digit_and_letter, is_secret
from superbizagent.domain.pattern import Pattern

_MARK: Final = r"(?:\\{0,15}[\"'])?"
_WORD: Final = r"(?P<secret>[^\s\"'\\-][^\s\"'\\]{0,255})"

_OPTION: Final = Pattern(
    r"(?<![\w-])--?(?:[a-z-]{0,30}(?:password|passwd|passphrase|token|secret|api-key|apikey|access-key|secret-key)"
    r"|(?:[a-z]{1,15}-){0,2}(?:pass|pwd)|storepass|keypass)"
    rf"\s{{1,4}}{_MARK}(?P<secret>[^\s\"'\\-][^\s\"'\\]{{0,1023}})"
)
_COMMANDS: Final = Pattern(rf"\b(?:(?i:mysql|mariadb)[a-z]{{0,10}}|7za?|sshpass)\b[^\n|;]{{0,200}}?\s-p{_MARK}{_WORD}")
# Programs that take a password after `-p` or `-P`; to others these are a port or a path.
_PROGRAMS: Final = Pattern(
    r"\b(?:mongo(?:sh|dump|restore|export|import|stat|top)?|cqlsh|rabbitmqadmin|influx|mosquitto_(?:pub|sub)|ipmitool"
    rf"|sqlcmd|bcp|zip|psexec(?:64)?)\b[^\n|;]{{0,200}}?\s-p\s{{1,4}}{_MARK}{_WORD}"
)
_SHELL: Final = Pattern(
    r"\b(?:sshpass\s{1,4}-p|redis-cli\b[^\n|;]{0,100}?\s-a"
    r"|(?:docker|podman|nerdctl|helm|az|oras|crane|skopeo)\b[^\n|;]{0,60}?\slogin\b[^\n|;]{0,200}?\s-p"
    r"|schtasks\b[^\n|;]{0,200}?\s/rp|(?:smbclient|rpcclient)\b[^\n|;]{0,200}?\s-u\s{0,4}[\w.\\/-]{1,64}%)"
    rf"\s{{0,4}}{_MARK}(?P<secret>[^\s\"'\\]{{1,256}})"
)
_SHORT: Final = Pattern(
    r"(?:\bopenssl\b[^\n|;]{0,200}?\s(?:-k\s{1,4}|-pass(?:in|out)?\s{1,4}pass:)|\bldap[a-z]{3,8}\b[^\n|;]{0,200}?\s-w\s"
    rf"|\bnet use\b[^\n|;]{{0,200}}?/user:\S{{1,64}}\s)\s{{0,4}}{_MARK}{_WORD}"
)
_LOGIN: Final = Pattern(
    r"\b(?:curl|wget|http)\b[^\n|;]{0,400}?\s(?:-u|--user|-U|--proxy-user|-a|--auth)[\s=]{1,4}(?:\\{0,3}[\"'])?[^\s:\"'\\]{1,64}"
    r":(?P<secret>[^\s\"'\\]{1,256})"
)
_FILE: Final = Pattern(
    r"\bhtpasswd\s{1,4}(?:-[a-z]{1,6}\s{1,4}){1,3}\S{1,200}\s{1,4}\S{1,100}\s{1,4}(?P<secret>\S{1,256})"
)
_PIPED: Final = Pattern(
    r"\becho\s{1,4}(?:\\{0,3}[\"'])?(?:[\w.-]{1,64}:)?(?P<secret>[^\s\"'\\|:]{1,256})(?:\\{0,3}[\"'])?\s{0,4}\|"
    r"\s{0,4}(?:sudo\s{1,4})?(?:chpasswd|passwd\b|docker login|gh auth)"
)
_NET_USER: Final = Pattern(r"\bnet user\s{1,4}[\w.\\-]{1,64}\s{1,4}(?P<secret>[^\s/*][^\s]{0,127})(?=\s{1,4}/)")
_SET: Final = Pattern(
    r"\b(?:requirepass|masterauth|auth-pass\s{1,4}[\w.-]{1,64}|bindpw|add-authtoken|wpa_passphrase\s{1,4}\S{1,64}"
    r"|nickserv\s{1,4}identify|rabbitmqctl\s(?:add_user|change_password)\s{1,4}\S{1,64}"
    rf"|convertto-securestring(?:\s{{1,4}}-string)?)\s{{1,4}}{_MARK}(?P<secret>[^\s\"'\\/$(-][^\s\"'\\]{{0,255}})"
)
# Of Redis, SMTP and FTP, as they stand in their logs and configurations.
_PROTOCOL: Final = Pattern(
    rf"(?<![\w-])(?:{_MARK}AUTH{_MARK}\s{{1,4}}(?:(?:PLAIN|LOGIN|XOAUTH2)\s{{1,4}}|{_MARK}[\w.-]{{1,64}}{_MARK}\s{{1,4}})?"
    r"|PASS\s{1,4}|SETUSER\s[^\n>]{1,100}?>)"
    rf"{_MARK}(?P<secret>[^\s\"'\\]{{6,1024}})"
)
_CREDENTIAL: Final = Pattern(
    r"(?:\b(?:NetworkCredential|PasswordCredential|UsernamePasswordCredentials|(?:HTTP)?BasicAuth)|\.auth)\s?\(\s{0,2}"
    r"\\{0,15}[\"'][^\"'\n\\]{0,100}\\{0,15}[\"'],\s{0,2}\\{0,15}[\"'](?P<secret>[^\"'\n\\]{1,256})"
)
_GIVEN: Final = Pattern(
    r"\b(?:with|using|new|old|temporary|temp|initial|default)\s(?:the\s)?(?:password|passwd|passphrase|passcode)\s{1,4}"
    r"(?P<secret>[^\s\"'\\:=(){}\[\],;/]{8,256})"
)
_USED: Final = Pattern(
    r"\b(?:use|using|try|with|set)\s{1,4}[\"'`]?(?P<secret>[^\s\"'`\\]{8,256})[\"'`]?\s{1,4}(?:as|for)\s(?:(?:the|your|a|its|my)\s)?"
    r"(?:[\w.-]{1,40}\s){0,2}?(?:password|passphrase|token|secret|api key)"
)
# Numbers sent to telephones and their like.
_CODES: Final = Pattern(
    r"(?:验证码|校验码|动态码|(?<![a-z])(?:otp|pin(?: code)?|(?:verification|security|one-time) code))"
    rf"{_MARK}(?:\s|[:：=]|is|为|是){{1,8}}{_MARK}(?P<secret>[0-9]{{4,8}})(?![0-9a-z.:])"
)
_NETRC: Final = Pattern(r"\blogin\s{1,8}\S{1,100}\s{1,8}password\s{1,8}(?P<secret>\S{1,256})")
_PGPASS: Final = Pattern(
    r"(?m:^)(?:[\w.-]{1,253}|\*):(?:5432|6432|\*):[\w*-]{1,63}:[\w*-]{1,63}:(?P<secret>\S{1,256})(?m:$)"
)
_SQL: Final = Pattern(
    r"\bidentified\s{1,4}(?:with\s{1,4}\S{1,60}\s{1,4})?(?:by|as)\s{1,4}(?:password\s{1,4})?"
    r"\\{0,3}[\"'](?P<secret>[^\"'\n\\]{1,256})"
)
# Oracle's needs no quotes.
_SQL_BARE: Final = Pattern(r"\bidentified\s{1,4}by\s{1,4}(?P<secret>[^\s\"'\\;,]{1,128})")

DETECTORS: Final = (
    Detector(matching(_OPTION, is_secret, lowered=True), ("--", "-p", "-t", "-s", "-a", "-k")),
    Detector(matching(_COMMANDS, is_secret), ("mysql", "mariadb", "7z", "sshpass")),
    Detector(
        matching(_PROGRAMS, is_secret, lowered=True),
        ("mongo", "cqlsh", "rabbitmqadmin", "influx", "mosquitto", "ipmitool", "sqlcmd", "bcp ", "zip ", "psexec"),
    ),
    Detector(matching(_SHELL, is_secret, lowered=True), ("sshpass", "redis-cli", "login", "schtasks", "client")),
    Detector(matching(_SHORT, is_secret, lowered=True), ("openssl", "ldap", "net use")),
    Detector(matching(_LOGIN, is_secret), ("curl", "wget", "http ")),
    Detector(matching(_FILE, is_secret, lowered=True), ("htpasswd",)),
    Detector(matching(_PIPED, is_secret, lowered=True), ("echo",)),
    Detector(matching(_NET_USER, is_secret, lowered=True), ("net user",)),
    Detector(
        matching(_SET, is_secret, lowered=True),
        (
            "requirepass",
            "masterauth",
            "-pass",
            "bindpw",
            "authtoken",
            "nickserv",
            "rabbitmqctl",
            "securestring",
            "wpa_",
        ),
    ),
    Detector(matching(_PROTOCOL, has_digit_and_letter), ("auth", "pass ", "setuser")),
    Detector(matching(_CREDENTIAL, is_secret), ("credential", "auth(")),
    Detector(matching(_GIVEN, has_digit_and_letter, lowered=True), ("pass",)),
    Detector(matching(_USED, has_digit_and_letter, lowered=True), (" as ", " for ")),
    Detector(matching(_CODES, lowered=True), ("码", "otp", "pin", " code")),
    Detector(matching(_NETRC, is_secret, lowered=True), ("login",)),
    Detector(matching(_PGPASS, is_secret), (":5432:", ":6432:", ":*:")),
    Detector(matching(_SQL, is_secret, lowered=True), ("identified",)),
    Detector(matching(_SQL_BARE, has_digit_and_letter, lowered=True), ("identified",)),
)
