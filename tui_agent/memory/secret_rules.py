"""What secrets look like: vendor prefixes, key names, prose in three languages, and what only looks like a secret.

Data for :mod:`tui_agent.memory.secrets`. Words are written folded (lower case, no diacritics, ``ё`` as ``е``).
"""

# ruff: noqa: E501 - a pattern reads best in one piece
from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


REPLACEMENT = "[secret removed]"

# --- vendor tokens --------------------------------------------------------------------------------
# Kept beside the libraries' rules: those check checksums and lengths that a truncated or mistyped token no longer
# meets, and a damaged token still gives most of the secret away.

_VENDORS = {
    "aws_access_key": r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}",
    "google_api_key": r"AIza[\w-]{30,}",
    "google_oauth": r"ya29\.[\w-]{20,}|1//0[\w-]{20,}|GOCSPX-[\w-]{20,}",
    "azure_client_secret": r"[\w.~-]{3}[0-9]Q~[\w.~-]{25,}",
    "github": r"gh[pousr]_[A-Za-z0-9]{10,}|github_pat_\w{20,}",
    "gitlab": r"(?:glpat|gldt|glrt|glft|glptt|glcbt|glsoat|gloas|glimt|glagent|glffct)-[\w-]{10,}|GR1348941[\w-]{15,}",
    "atlassian": r"ATBB\w{16,}|ATATT[\w-]{20,}|ATCTT[\w-]{20,}",
    "openai": r"sk-(?:proj|svcacct|admin|None)-[\w-]{16,}|sk-[A-Za-z0-9]{20,}",
    "anthropic": r"sk-ant-[\w-]{16,}",
    "openrouter": r"sk-or-[\w-]{16,}",
    "model_host": r"(?:hf_|gsk_|r8_|nvapi-|pplx-|xai-|tvly-|fw_|co_|jina_)[A-Za-z0-9_-]{12,}",
    "registry": r"npm_[A-Za-z0-9]{16,}|pypi-[\w-]{16,}|rubygems_[0-9a-f]{20,}|dckr_[a-z]{2,4}_[\w-]{10,}|oy2[a-z0-9]{43}",
    "stripe": r"(?:sk|rk)_(?:live|test)_\w{10,}|whsec_[\w+/]{16,}",
    "slack": r"xox[a-z](?:\.xox[a-z])?-[\w-]{10,}|xapp-[\w-]{10,}",
    "discord": r"[MNO][A-Za-z0-9_-]{22,27}\.[\w-]{6}\.[\w-]{20,}",
    "sendgrid": r"SG\.[\w-]{16,}\.[\w-]{16,}",
    "shopify": r"shp(?:at|ss|ca|pa|tka)_[0-9a-fA-F]{16,}",
    "grafana": r"gl(?:sa|c)_[\w+/=]{20,}",
    "notion": r"(?:ntn|secret)_[A-Za-z0-9]{40,}",
    "vault": r"hv[sbr]\.[\w-]{20,}",
    "age": r"AGE-SECRET-KEY-1[A-Z0-9]{20,}",
    "digitalocean": r"do[opr]_v1_[0-9a-f]{20,}",
    "databricks": r"dapi[0-9a-f]{32}",
    "postman": r"PMAK-[0-9a-f]{20,}-[0-9a-f]{20,}",
    "linear": r"lin_(?:api|oauth)_[A-Za-z0-9]{16,}",
    "figma": r"fig[doru]{1,2}_[\w-]{20,}",
    "pulumi": r"pul-[0-9a-f]{32,}",
    "doppler": r"dp\.(?:pt|st|sa|ct|scim|audit)\.[\w.-]{20,}",
    "newrelic": r"NR(?:AK|JS|II|RA)-[A-Za-z0-9]{16,}",
    "mailgun": r"key-[0-9a-f]{32}",
    "mailchimp": r"[0-9a-f]{32}-us[0-9]{1,2}",
    "square": r"sq0(?:csp|atp|idp)-[\w-]{20,}",
    "twilio": r"SK[0-9a-f]{32}",
    "sentry": r"sntry[su]_[\w+/=]{20,}",
    "supabase": r"sb(?:p|_secret)_[\w-]{20,}",
    "airtable": r"pat[A-Za-z0-9]{14}\.[0-9a-f]{32,}",
    "tailscale": r"tskey-[\w-]{16,}",
    "sourcegraph": r"sgp_[\w-]{20,}",
    "circleci": r"CCIPAT_[\w-]{20,}",
    "flyio": r"fo1_[\w-]{20,}|FlyV1",
    "jwt": r"eyJ[\w-]{8,}\.(?:eyJ|[\w-])[\w-]{7,}(?:\.[\w-]*)?",
}
VENDOR = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _VENDORS.items()))
"""Matched at the start of a token-like run only, so that it costs nothing on prose."""

# Prefixes nobody uses for anything else: what follows them is a secret even when it is too short for the rule above,
# as half of a token that a terminal has wrapped is.
UNMISTAKABLE = re.compile(
    r"(?:gh[pousr]_|github_pat_|glpat-|sk-ant-|sk-proj-|hf_|gsk_|npm_|pypi-|dckr_pat_|xox[bp]-|shpat_|hvs\.|dop_v1_"
    r"|AKIA|ASIA|AIza|SG\.|[sr]k_live_)[\w-]{6,}"
)

# Telegram's and Slack's secrets hold ``:`` and ``/``, so they are not one token-like run.
WITH_PUNCTUATION = re.compile(
    r"(?<![\w:])\d{8,10}:[A-Za-z][\w-]{33,36}(?![\w-])"
    r"|https?://hooks\.slack\.com/(?:services|workflows)/[\w/+-]{20,}"
    r"|https?://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}"
    r"|https?://[\w.-]+\.webhook\.office\.com/[\w/@.-]{20,}"
)

# detect-secrets plugin -> text that must be there before its expressions are tried at all.
PLUGIN_TRIGGERS = {
    "artifactory.ArtifactoryDetector": ("AKC", "AP"),
    "aws.AWSKeyDetector": ("A3T", "ABIA", "ACCA", "AKIA", "ASIA"),
    "azure_storage_key.AzureStorageKeyDetector": ("AccountKey=",),
    "basic_auth.BasicAuthDetector": ("://",),
    "cloudant.CloudantDetector": ("cloudant",),
    "discord.DiscordBotTokenDetector": (".",),
    "github_token.GitHubTokenDetector": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    "gitlab_token.GitLabTokenDetector": ("gl", "GR1348941"),
    "jwt.JwtTokenDetector": ("eyJ",),
    "mailchimp.MailchimpDetector": ("-us",),
    "npm.NpmDetector": ("_authToken",),
    "openai.OpenAIDetector": ("T3BlbkFJ",),
    "pypi_token.PypiTokenDetector": ("pypi-",),
    "sendgrid.SendGridDetector": ("SG.",),
    "slack.SlackDetector": ("xox", "hooks.slack"),
    "softlayer.SoftlayerDetector": ("softlayer",),
    "square_oauth.SquareOAuthDetector": ("sq0csp",),
    "stripe.StripeDetector": ("k_live_",),
    "telegram_token.TelegramBotTokenDetector": (":",),
    "twilio.TwilioKeyDetector": ("SK",),
}

# --- key names ------------------------------------------------------------------------------------

# The cheap first look: where one of these stands, the word around it is judged.
STEM = re.compile(
    r"pass|pwd|\bpw\b|secret|sekret|секрет|token|токен|key|klucz|ключ|has[lł][oeauł]|парол|\bпасс|auth|cred|jwt|bearer"
    r"|кодово[ем]",
    re.IGNORECASE,
)

PASSWORD_PARTS = _words(
    "password passwd passwort passphrase passcode pass pwd pw haslo hasla haslem hasle hasłem parol "
    "пароль пароля паролем паролю пароле"
)
PASSWORD_ENDINGS = ("password", "passwd", "passphrase", "passwort")
SECRET_PARTS = _words("secret sekret секрет")
TOKEN_PARTS = _words("token tokenem tokena tokenu tokenie токен токена токеном токену токене jwt bearer authtoken")
TOKEN_ENDINGS = ("token", "apikey", "secretkey", "accesskey", "privatekey", "authkey", "signingkey", "appkey")
AUTH_PARTS = _words("auth authorization credential credentials cred creds")
KEY_PARTS = _words("key klucz klucza kluczem kluczu ключ ключа ключом ключу ключе")
KEY_OWNERS = _words(
    "api access secret private signing sign encryption encrypt auth license licence account client master service "
    "hmac session app deploy admin user aes rsa ssh gpg consumer shared storage"
)
# The last part of a name that turns it into something else: `password_hash`, `token_ttl`, `secretName`.
NOT_A_SECRET = _words(
    "hash hashed id ids ttl length len min max field fields name names url uri path file files filename type types count "
    "counts limit limits size policy policies expires expiry expiration expire required reset public label placeholder "
    "error errors message regex pattern rotation enabled disabled header headers param parameter prefix suffix env hint "
    "help text title strength manager provider validator validators ref version store lifetime age at date time usage "
    "budget window rate per format endpoint dir folder repository service class input form box button link request "
    "response changed forgot visible visibility toggle algorithm alg bits index column table encoder decoder tokenizer "
    "mode kind method methods scheme schema interval days minutes hours seconds stdin prompt check checker rule rules "
    "generator factory handler used uses description note status state meta info source target group list set map "
    "mapper vault tokens keys passwords secrets"
)
NOT_A_SECRET_ANYWHERE = _words("public forgot forgotten reset lost pad eos bos unk sep mask stop")
KEY_NOT_A_SECRET = _words(
    "primary foreign sort sorting partition index cache unique composite hot shortcut join row range lookup object "
    "registry translation i18n config header glowny obcy sortowania podstawowy публичный первичный внешний сортировки "
    "publiczny"
)

# --- values ---------------------------------------------------------------------------------------

# What stands where a secret would, and is none.
STAND_IN = re.compile(
    r"^(?:[<$%{\[]|\(|\*|•|…|\.\.|@\{|env[:.(]|process\.|os\.|vault:|secret://|op://|arn:|file:|ENC\[|!vault)"
    r"|^[\W_xX0]*$"
    r"|^(.)\1{3,}"
    r"|\*{3,}|•{2,}|\.{3}|…|\[secret removed\]|x{6,}|X{6,}"
    r"|(?:^|[^a-z])(?:your|twoj|twój|twoje|ваш|my|moj|moje|some|the|insert|replace|enter|put|change|example|sample"
    r"|placeholder|dummy|fake|redacted|removed|hidden|masked)(?:$|[^a-z0-9]|me\b)"
    r"|EXAMPLE",
    re.IGNORECASE,
)

# Plain words that follow a key name without being its secret, folded.
PLAIN_WORDS = _words(
    # types, constants and words of code
    "str string text bool boolean int integer number bytes byte char any object null none nil undefined true false yes "
    "no on off auto default required optional await new async self this return const let var func function lambda not "
    "empty missing invalid valid expired unset blank enabled disabled basic bearer digest input hidden type secretstr "
    "varchar static default file env prompt ask "
    # states in prose
    "wrong correct incorrect same stored kept saved changed set weak strong long short too needed known unknown safe "
    "secure public private protected encrypted hashed here there below above now later gone lost "
    "wymagane wymagany puste pusty brak nieprawidlowe niepoprawne bledne zle poprawne takie samo nowe stare zmienione "
    "zapisane potrzebne opcjonalne tajne ukryte nieznane wazne silne slabe dlugie krotkie tak nie ponizej tutaj "
    "неверный неверен верный верен обязателен обязательно пустой нет да такой тот прежний новый старый изменен сохранен "
    "нужен известен неизвестен ниже тут здесь пуст простой сложный "
    # the key names themselves, as labels
    "password passwd pass pwd passphrase secret token key auth login user username name email haslo hasla klucz parol "
    "пароль токен ключ секрет логин "
)

# Words of the trade that mix letters and digits.
TECH_WORD = re.compile(
    r"(?:sha|md|hs|rs|es|ps|utf|base|int|uint|float|aes|rsa|ed|x|h|v|ver|py|python|mp|ipv|ps|s|ec|k|r|i|l|web|oauth|http"
    r"|argon|bcrypt|pbkdf|scrypt|log4|sqlite|bip|p|d|e|c|n|neo|win|e2|b2|w3|auth|saml)-?\d{1,5}[a-z]{0,3}"
    r"|\d{1,3}(?:fa|px|em|rem|gb|mb|kb|tb|ms|s|h|d|m|k|x|st|nd|rd|th|bit|bits|b|pt|cm|mm|km|kg|zl|eur|usd|min)"
    r"|v?\d+(?:\.\d+){1,3}\S{0,12}|pbkdf2\S*|argon2\S*|k8s|i18n|l10n|a11y|x509|tls1\.\d",
    re.IGNORECASE,
)
HOST_OR_PATH = re.compile(
    r"(?:\d{1,3}\.){3}\d{1,3}\S*|[a-z][a-z0-9+.-]*://\S*|[~.]{0,2}/\S*|[A-Za-z]:\\\S*|[\w.@~-]+/[\w./-]+"
    r"|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:py|js|ts|md|txt|json|ya?ml|toml|env|pem|key|ini|cfg|conf|sh|log|lan|local|com|org"
    r"|net|io|dev|internal|test|invalid|example|pl|ru|de|eu|html|go|rs|java|zip|gz)(?::\d+)?"
    r"|\S+@\S+\.\S+",
    re.IGNORECASE,
)
CODE_PATH = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|\?\.|::|->)[A-Za-z_$][\w$]*)+")
CODE_ROOT = re.compile(
    r"(?:os|process|env|environ|settings|config|conf|cfg|self|this|args|opts|options|request|req|res|ctx|context|secrets|var"
    r"|vars|local|data|params|props|state|app|user|form|body|input|module|aws|keyring|getpass|import|event|values)\b",
    re.IGNORECASE,
)
# Text in front of a value that says what it is instead.
DIGEST_BEFORE = re.compile(
    r"(?:sha-?(?:1|224|256|384|512)|md5|h1|integrity|checksum|digest|commit|etag|hash|suma|сумма|base64,)\W{0,4}$",
    re.IGNORECASE,
)

# --- structure ------------------------------------------------------------------------------------

PEM = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[^-]|-(?!----)){0,20000}?(?:-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----)"
)
# A key whose end is missing: as many lines as look like base64 (or like its headers).
PEM_OPEN = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----(?:(?:\s|\\[nr])*(?:[A-Za-z0-9+/=]{16,}|[A-Z][\w-]+: [^\n]{1,80}))+"
)
PUTTY = re.compile(r"(?:Private-Lines: \d+|Private-MAC: )\s*((?:[A-Za-z0-9+/=]{16,}\s*)+)")

URL = re.compile(
    r"(?<![\w+.-])(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{1,20})://(?P<user>[^\s:/@'\"<>]{0,128}):(?P<password>[^\s'\"<>]{1,256}?)@"
    r"(?=[\w.\[$-])(?![^\s/'\"<>]*@)"
)
URL_TOKEN = re.compile(r"://(?P<token>[A-Za-z0-9_.~-]{20,255})(?::x-oauth-basic)?@")
QUERY = re.compile(
    r"[?&;](?P<name>(?:[\w-]{0,24}(?:key|token|secret|password|passwd|pwd|pass))|sig|signature|auth|x-amz-signature"
    r"|x-amz-security-token|jwt)=(?P<value>[^&\s'\"#<>;]{6,2048})",
    re.IGNORECASE,
)
AUTH_HEADER = re.compile(
    r"\bauthorization[\"']?\s*[:=]\s*[\"']?(?:(?P<scheme>[A-Za-z][\w-]{2,15})\s+)?(?P<value>[^\s'\",;]{6,4096})",
    re.IGNORECASE,
)
BEARER = re.compile(r"\bbearer\s+(?P<value>[A-Za-z0-9_.~+/=-]{12,4096})", re.IGNORECASE)
COOKIE = re.compile(r"(?<![\w-])(?:set-)?cookie\s*:\s*(?P<pairs>[^\n]{1,8192})", re.IGNORECASE | re.MULTILINE)
COOKIE_PAIR = re.compile(
    r"(?P<name>[\w.-]*(?:sess|sid|token|auth|csrf|xsrf|jwt|remember)[\w.-]*)=(?P<value>[^;\s]{8,4096})", re.IGNORECASE
)
XML = re.compile(
    r"<(?P<tag>[\w:.-]{0,40}(?:password|passwd|passphrase|secret|token|apikey|api-key|privatekey)[\w:.-]{0,10})(?:\s[^<>]{0,200})?>"
    r"(?P<value>[^<>\n]{3,512})</",
    re.IGNORECASE,
)
COMMANDS = re.compile(
    r"\b(?:mysql\w*|mariadb\w*)\b[^\n|;]{0,300}?\s-p(?P<mysql>[^\s'\"=-][^\s|;]{2,128})"
    r"|\bsshpass\b[^\n|;]{0,60}?\s-p[ \t]*['\"]?(?P<sshpass>[^\s'\"]{3,128})"
    r"|\b(?:docker|podman|helm|skopeo|az|oc|buildah)\b[^\n|;]{0,80}?\blogin\b[^\n|;]{0,200}?\s-p[ \t]+['\"]?(?P<login>[^\s'\"]{3,256})"
    r"|\bredis-cli\b[^\n|;]{0,200}?\s-a[ \t]+['\"]?(?P<redis>[^\s'\"]{3,128})"
    r"|\bcurl\b[^\n|;]{0,400}?\s(?:-u|--user|--proxy-user)[ \t=]*['\"]?[^\s:'\"]{1,64}:(?P<curl>[^\s'\"]{3,256})"
    r"|\b(?:pass|passin|passout|env:|pass:)[ \t]*pass:(?P<openssl>[^\s'\"]{3,128})"
    r"|\bnet[ \t]+use\b[^\n|;]{0,120}?/user:\S{1,64}[ \t]+(?P<netuse>[^\s/'\"]{3,128})"
    r"|\bhtpasswd\b[^\n|;]{0,40}?\s-\w*b\w*[ \t]+\S+[ \t]+\S+[ \t]+(?P<htpasswd>[^\s'\"]{3,128})"
    r"|\b(?:ldap\w+)\b[^\n|;]{0,300}?\s-w[ \t]+['\"]?(?P<ldap>[^\s'\"]{3,128})"
    r"|\b(?:7z|7za|zip|unzip|unrar)\b[^\n|;]{0,60}?\s-[pP][ \t]?['\"]?(?P<zip>[^\s'\"-]{4,128})"
)
PGPASS = re.compile(r"^[\w.*-]+:(?:\d{4,5}|\*):[\w*-]+:[\w*-]+:(?P<value>[^\s:]{4,128})$", re.MULTILINE)

# --- prose ----------------------------------------------------------------------------------------

# A word or sign after which the value stands.
CONNECTIVE = re.compile(
    r"\s*(?P<sign>[:=]|->|→|=>)\s*"
    r"|\s*(?P<dash>[—–]|\s-)\s+(?:это\s+|to\s+)?"
    r"|\s+(?P<word>is|was|are|to|jest|brzmi|brzmia[lł]o|это|теперь|сейчас|такой|будет|reads|equals|remains|stays|wynosi|zostaje"
    r"|stanowi)"
    r"(?=\s|:)(?:\s+(?:now|currently|still|just|simply|only|teraz|obecnie|nadal|po prostu|tylko|to|теперь|сейчас|это|просто"
    r"|такой|nast[eę]puj[aą]ce|следующий|as follows))*:?\s+"
    r"|\s+(?P<change>na|на|to)\s+",
    re.IGNORECASE,
)
CHANGE_VERB = re.compile(
    r"chang|\bset\b|updat|rotat|\breset|switch|replac|renam|zmieni|ustawi|podmieni|zresetow|смени|сменя|помен|поменя|измени"
    r"|установ|обнови|заменил",
    re.IGNORECASE,
)
PREPOSITION = re.compile(r"\s+(?:do|od|dla|w|na|z|u|for|of|on|to|from|in|от|для|к|у|в|на|с)\s+", re.IGNORECASE)
SLOGAN = re.compile(
    r"\s+(?:reklamow|kampanii|wyborcz|przewodni|promocyj|dnia|marketing|firmy\s+to|sezonu|s[lł]ownik|encyklop|akcji)",
    re.IGNORECASE,
)
WIFI = re.compile(r"wi-?fi|wlan|ssid|вай-?фай|hotspot|\bnetwork\b|\bsie[cć]\b|\bсеть\b", re.IGNORECASE)
CREDENTIAL_PAIR = re.compile(
    r"\b(?:cred(?:ential)?s|login details|logins?|log-?in|account|dane\s+(?:do\s+)?logowania|dane\s+dost[eę]powe|poświadczenia"
    r"|данные\s+для\s+входа|доступ\w{0,3}|уч[её]тк\w{1,2}|логин\w?\s*(?:/|и)\s*пароль|login\s*(?:/|i|and)\s*(?:has[lł]o|password))"
    r"[^\n,.;:—–/]{0,30}?(?:\s*[:=—–]\s*|\s+(?:are|is|to|jest)\s+)(?P<user>[^\s/:,|]{1,64})(?:\s*[/|]\s*|:)(?P<value>[^\s,;|]{4,128})",
    re.IGNORECASE,
)
PINS = re.compile(
    # a PIN, in so many words
    r"\b(?:pin|пин|ПИН)(?:-?(?:code|kod|код))?\b(?P<gap>[^\n.,;!?\d]{0,48}?)(?P<pin>(?<![\w.-])\d{4,8}(?![\w.]\w))"
    # a code that opens something
    r"|\b(?P<what>(?:(?:door|gate|alarm|safe|entry|access|lock|garage|building|unlock|security|intercom|vault)\s+"
    r"(?:code|combination|pin|number)|combination(?:\s+(?:to|of|for)\s+the\s+\w+)?|kod\w{0,2}\s+(?:do|od|dostępu|dostepu)|szyfr\s+do|kombinacj\w\s+do"
    r"|код\w{0,2}\s+(?:от|для|к|сейфа|домофона|замка|ворот|двери|доступа|сигнализации|подъезда)|шифр\s+(?:от|сейфа)))\b"
    r"(?P<gap2>[^\n.,;!?\d]{0,48}?)(?P<code>(?<![\w.-])(?:\d{1,3}(?:[ -]\d{1,3}){1,4}|\d{3,10})[#*]?(?![\w]))",
    re.IGNORECASE,
)
PIN_NOT = re.compile(
    r"postal|poczt|kierunk|b[lł][eę]d|error|exit|status|zip|kraju|ошибк|почт|возврат|source|zajmuje|ma\s+\w+\s+cyfr",
    re.IGNORECASE,
)
CODE_WORD = re.compile(
    r"(?:кодовое\s+слово|код-слово|has[lł]o\s+awaryjne|code\s*word|safe\s*word|security\s+answer)(?:\s+[^\s,.;:—–]{1,24}){0,4}?"
    r"\s*(?:[:=—–]|\s(?:is|to|это)\s)\s*[\"'«„“]?(?P<value>[^\s,.;\"'»”]{3,64})",
    re.IGNORECASE,
)
SEED_PHRASE = re.compile(
    r"\b(?:recovery|seed|mnemonic|backup|secret)\s+(?:phrase|words)\b[^\n\"'«„“:]{0,40}?(?:is|are|:|—)\s*[\"'«„“]?"
    r"(?P<value>(?:[a-z]{3,8}[ ,]+){11,23}[a-z]{3,8})"
    r"|\b(?:fraz[aę]\s+(?:odzyskiwania|seed)|сид-?фраза|мнемоник\w|фраза\s+восстановления)\b[^\n\"'«„“:]{0,40}?[:=—–]?\s*[\"'«„“]?"
    r"(?P<value2>(?:\w{3,12}[ ,]+){11,23}\w{3,12})",
    re.IGNORECASE,
)
NEXT_LINE_PROMISE = re.compile(r"[:=]\s*(?:[|>][-+]?|\\)?[ \t]*\n[ \t]*(?P<value>\S{4,256})[ \t]*(?:\n|$)")
