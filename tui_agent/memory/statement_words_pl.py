"""Polish patterns for :mod:`tui_agent.memory.statements`; folded before use, so they may be written with diacritics."""

# ruff: noqa: E501 - a pattern reads best in one piece
from __future__ import annotations

NUMBER = (
    r"(?:\d[\d.,]*(?:\s?(?:tys\w*|mln|procent|%))?|dwa|dwie|dwóch|trzy|trzech|cztery|czterech|pięć|pięciu|sześć|siedem|osiem|dziewięć"
    r"|dziesięć|sześciu|siedmiu|ośmiu|dziewięciu|dziesięciu|jedenastu|dwunastu|dwoje|troje|czworo|pięcioro|sześcioro|siedmioro|ośmioro|dziewięcioro|dziesięcioro|jedenaście|dwanaście|piętnaście|dwadzieścia|trzydzieści|czterdzieści|pięćdziesiąt|kilkanaście|kilkadziesiąt|sto|setki|tysiąc\w*)"
)
NUMBER_WORDS = {
    "jeden": 1, "jedna": 1, "dwa": 2, "dwie": 2, "dwóch": 2, "trzy": 3, "trzech": 3, "kilka": 3, "cztery": 4, "czterech": 4,
    "pięć": 5, "pięciu": 5, "sześć": 6, "siedem": 7, "osiem": 8, "dziewięć": 9, "dziesięć": 10, "czternaście": 14, "trzydzieści": 30,
}  # fmt: skip
UNITS = {
    r"(?:godziny|godzin|godzinę)": 1 / 24, r"(?:dni|dzień|dnia)": 1, r"(?:tygodnie|tygodni|tydzień|tygodnia)": 7, r"(?:miesiące|miesięcy|miesiąc|miesiąca)": 30,
    r"(?:sprinty|sprint|sprintów)": 14, r"(?:kwartał\w*)": 90, r"(?:lata|lat|rok|roku)": 365,
}  # fmt: skip
WEEKDAYS = {
    "poniedziałk": 0, "wtork": 1, "środ": 2, "czwartk": 3, "piątk": 4, "sobot": 5, "niedziel": 6,
}  # fmt: skip
MONTHS = (
    "stycznia", "lutego", "marca", "kwietnia", "maja", "czerwca", "lipca", "sierpnia", "września", "października", "listopada", "grudnia",
)  # fmt: skip
SPANS = (
    r"(?:przez|na|w ciągu)?\s*(?:te )?(?:najbliższe|najbliższych|następne|następnych|kolejne|kolejnych|nadchodzące) {n} {unit}",
    r"(?:przez|na)?\s*(?:ten )?(?:najbliższy|następny|kolejny|cały|nadchodzący) {unit}",
    r"(?:przez|jeszcze) {n} {unit}(?! temu)",
)
FIXED = (
    (r"\bdo jutra\b|\bprzed jutrem\b", 1),
    (r"\b(?:dziś|dzisiaj|dzisiejszy|dzisiejszego|dziś wieczorem|do wieczora|do końca dnia)\b", 1),
    (r"\b(?:jutro|jutrzejszy)\b", 2),
    (
        r"\b(?:w tym|ten|tego|cały ten|do końca|przez ten) tygodni?\w*\b|\bdo (?:przyszłego tygodnia|weekendu)\b|\bdo końca tygodnia\b",
        7,
    ),
    (r"\b(?:w przyszłym|w następnym|przyszły) tygodni\w+\b", 14),
    (r"\b(?:w tym|ten|do końca tego) sprin\w+\b", 14),
    (r"\b(?:w tym|ten|do końca) (?:tego )?miesiąc\w*\b|\bdo przyszłego miesiąca\b", 30),
    (r"\b(?:w tym|do końca) (?:tego )?kwarta\w+\b", 90),
)
UNTIL = r"(?:do|aż do|przed)"
AWAY = r"\b(?:urlop\w*|chorobow\w*|l4|zwolnieni\w*|choruj\w*|wyjazd\w*|wyjeżdżam|delegacj\w*|konferencj\w*|nieobecn\w*|nie ma|nie będzie|wolne)\b"
LASTING = r"\b(?:każdy|każdego|każdą|co (?:dzień|tydzień|miesiąc|wieczór|rano)|codziennie|zawsze|od (?:dziś|dzisiaj|jutra|teraz)|cotygodniow\w+)\b"

TASK = (
    r"^(?:i |a |no )*(?:potem|następnie|na koniec|zacznijmy|zobaczmy|spróbujmy|teraz (?:dodaj|zrób|chcę|mam))\b", r"\bmamy tu(?:taj)?\b|\btu(?:taj)? (?:mamy|jest|mam)\b", r"\bt(?:ę|ą|a|en|ej|ym|ego|ych|e) (?:\w+ )?(?:funkcj|pętl|klas|plik|test|lini|kod|wersj|metod|stron|przycisk|skrypt|zapyta|wariant|rozwiąza|zmian|błąd|błęd)\w*",
    r"\b(?:wynik|funkcja|metoda|pętla|lista|wyjście|klasa|skrypt|program|kod|napis|przycisk|strona) (?:ma|musi|powin\w+|zwraca|wypisuje)\b", r"\bkażd(?:y|a|e|ą|ego) (?:wiersz|element|lini|klucz|wartoś|liczb|znak|komórk|wpis)\w*", r"\b(?:najpierw )?(?:musimy|trzeba|chcemy|możemy) (?:naprawić|sprawdzić|znaleźć|zrobić|zobaczyć|poprawić)\b", r"\bdalej (?:się )?(?:wywala|nie działa|pada)\b", r"\bteraz nad\b",
)  # fmt: skip
NARRATION = r"^(?:no |a |ale |teraz |i )*(?:dostaję|dostałem|dostałam|spróbowałem|spróbowałam|próbowałem|próbowałam|próbuję|chcę|chciałbym|chciałabym|zmieniłem|zmieniłam|uruchomiłem|uruchomiłam|odpaliłem|odpaliłam|mam (?:problem|błąd|pytanie|listę|plik|funkcję)|widzę|nie rozumiem|myślę|potrzebuję|dodałem|dodałam|poprawiłem|poprawiłam|zrobiłem|zrobiłam|pisze, że|wypisuje|zwraca|zapomniałeś|zapomniałaś|mój kod|moja funkcja|mój skrypt)\b"
STANDING = r"^(?:proszę,? )?(?:gdy|kiedy|jeśli|jeżeli|jak|zanim|ilekroć|po tym jak|przed)\b[^,]{3,60}, (?:to |najpierw |zawsze |od razu |nigdy |nie |proszę )*\w+(?:aj|uj|ij|yj|ej|ź|ż|sz|cz|dz|ń|ów|rz|daj|lij)(?:cie)?\b"
INTRO = r"^(?:krótko |parę słów |kilka słów |coś |słowo |dwa słowa )?o (?:mnie|sobie)\b[^.]{0,12}:"
OFF_RECORD = (
    r"\bnie (?:musisz |trzeba |powinieneś |powinnaś )?(?:zapisuj|zapisywać|zapamiętuj|zapamiętywać|notuj|notować|zachowuj|zachowywać|pamiętaj|utrwalaj|odnotowuj|dopisuj|wpisuj|przechowuj)\w*"
    r"(?: (?:tego|to|tych|niczego|nigdzie|proszę|sobie))*(?=[,:.;!]|$| ale| że| bo| tylko| z tego| co)",
    r"\b(?:tego|to|tej|tych)(?: \w+){0,2} nie (?:zapisuj|zapamiętuj|notuj|zachowuj|pamiętaj|utrwalaj|odnotowuj|wpisuj|przechowuj)\w*",
    r"\b(?:tylko |całkiem |tak )?między nami(?: mówiąc)?\b", r"\bnie do (?:zapisu|zapisania|zapamiętania|notatek|protokołu|pamięci)\b", r"\bpoza (?:protokołem|pamięcią|notatkami|zapisem)\b",
    r"\b(?:zostaw|trzymaj|zatrzymaj)\w* (?:to |tego )?(?:dla siebie|poza|z dala)\b", r"\bzapomnij,? (?:że|o tym|co)\b", r"\bbez (?:zapisywania|zapamiętywania|notowania)\b", r"\bnie (?:rób|prowadź|zostawiaj|twórz) (?:\w+ ){0,3}?(?:notat|śladu|zapis)\w*",
    r"\bniech to zostanie między nami\b", r"\bto poufne\b|\bpoufnie\b", r"\bnie chcę,? żebyś (?:to |tego )?(?:zapis|zapamięt|notow|przechow)\w+",
)  # fmt: skip
ALLOWED = r"\b(?:(?:zapisać|zapamiętać|zanotować) (?:możesz|możecie|warto)|(?:możesz|możecie|warto) (?:\w+ )?(?:zapisać|zapamiętać|zanotować)|(?:za to|natomiast|ale) (?:zapisz|zapamiętaj|zanotuj))\b"
SMALL_TALK = (
    "ok okej okay tak nie no dobra dobrze super świetnie dzięki dziękuję jasne pewnie spoko fajnie ekstra extra rozumiem "
    "kumam działa działało zadziałało dalej kontynuuj proszę cześć hej witaj siema witam pa do widzenia zobaczenia miło "
    "poznać aha mhm hmm racja zgoda zgadza się wszystko gra git gotowe bardzo to i a jeszcze raz już teraz w porządku "
    "następne kolejne dzień dobry dobry wieczór wielkie bomba idealnie oczywiście zrób tak zróbmy lecimy lecisz śmiało mi "
    "pomogło serdecznie genialnie przepraszam nieźle dokładnie podoba się teraz o"
)
GREETING = r"(?:cześć|hej|witaj|witam|siema|dzień dobry|dobry wieczór|dzięki|dziękuję|ok|okej|dobra|a|i|aha|no|więc|swoją drogą|przy okazji|a propos)"
QUESTION_START = r"(?:czy|co|jak|dlaczego|czemu|kiedy|gdzie|skąd|który|która|które|kto|ile|czym|możesz|mógłbyś|mogłabyś|możemy|czyj|jaki|jaka|jakie|po co|umiesz|potrafisz)\b"
MUSING = (
    r"\b(?:a )?(?:gdyby\w*|jeśliby|jeżeliby)\b", r"(?:^|[,;] |\ba )(?:może|być może|pewnie|chyba)\b", r"\bzastanawiam(?:y)? się\b", r"\b(?:luźna|taka) myśl\b", r"\bsam\w? nie wiem\b", r"\bnie (?:jestem pewien|jestem pewna|wiem,? czy)\b",
    r"\b(?:kiedyś|któregoś dnia|pewnego dnia) (?:może|chciał|spróbuj|przejdzi)\w*", r"\b(?:załóżmy|przypuśćmy|powiedzmy|wyobraź sobie|hipotetycznie|teoretycznie|głośno myślę|myślę na głos)\b", r"\bmyślę,? (?:czy|nad tym|o tym)\b", r"\brozważam\w*\b",
    r"\b(?:chciałbym|chciałabym) kiedyś\b", r"\bkusi mnie\b", r"\bpowinniśmy (?:może|chyba|pewnie)\b|\bmoże powinniśmy\b", r"\btak tylko (?:gadam|mówię|myślę)\b", r"\bżartuję\b", r"\bpewnie (?:bym|chciał)\w*",
)  # fmt: skip
SARCASM = (
    r"^(?:jasne|no tak|no jasne|oczywiście|pewnie|super|świetnie|brawo|no pewnie|akurat|ta jasne|taa)[, ]+(?:tak |jasne |to )*(?:najlepiej|przepiszmy|wdr\w+|od razu|jeszcze|może|bo|właśnie|zróbmy|dodajmy|wyrzućmy|napiszmy)\b",
    r"\bco (?:może|mogło|mogłoby) pójść nie tak\b", r"\b(?:świetny|genialny|cudowny|wspaniały) (?:plan|pomysł)\b[^a-z]*$", r"\bjuż widzę,? jak\b", r"\bakurat tego (?:nam )?(?:brakowało|potrzeba)\b",
)  # fmt: skip
FICTION = (
    r"\bw moj(?:ej|im) (?:powieści|książce|grze|opowiadaniu|scenariuszu|komiksie|śnie)\b", r"\b(?:bohater|bohaterka|protagonista|główna postać|narrator)\w*\b", r"\bdawno,? dawno temu\b", r"\budawaj,? że\b",
)  # fmt: skip
REPORTED = (
    r"\b(?:readme|dokumentacj\w+|artyku\w+|blog\w*|wpis\w*|post\w*|mail\w*|e-?mail\w*|list\w*|wiadomoś\w+|komentarz\w*|zgłoszeni\w+|forum|wątk\w+|log\w*|stron\w+|książ\w+|instrukcj\w+|raport\w*|plik\w*|notatk\w+|specyfikacj\w+)\b"
    r"[^.!?]{0,60}?\b(?:napisa(?:ł\w*|no|ne|li)|pisze|piszą|mówi|mówią|stoi(?= napisan|,|:| jak byk| czarno| że)|twierdz[iąa]\w*|sugeruj[eą]|zaleca|zalecają|prosi|proszą|brzmi|kończy się|zaczyna się|radzi|radzą|wspomina|podaje|podają)\b",
    r"\b(?:ktoś|on|ona|oni|klient\w*|autor\w*|szef\w*|kierowni\w+|dostawc\w+|wykonawc\w+|recenzent\w*|podwykonawc\w+|kolega|koleżanka)(?: \w+){0,3} (?:napisa\w+|pisze|powiedzia\w+|mówi\w*|twierdzi\w*|prosi\w*|uważa\w*|sugeruje|stwierdzi\w+)\b",
    r"\bwedług (?:artykułu|dokumentacji|autora|klienta|forum|niego|niej)\b", r"\bcytuję\b|\bcytat\b",
)  # fmt: skip
KIN = (
    r"(?:mój |moja |moi |nasz |nasza |jego |jej |ich )?(?:\w+ )?(?:kolega|koleżanka|koledzy|szef|szefowa|kierowni\w+|brat|siostra|przyjaciel|przyjaciółka|żona|mąż|partner|partnerka|mama|tata|ojciec|matka|kumpel|znajomy|znajoma"
    r"|klient|klientka|sąsiad|sąsiadka|współlokator\w*|kuzyn|kuzynka|wujek|ciocia|syn|córka|chłopak|dziewczyna|nauczyciel\w*|stażyst\w+|prezes|dyrektor\w*)\b"
)
PEER = r"(?:mój |moja )?(?:kolega|koleżanka|brat|siostra|przyjaciel|przyjaciółka|żona|mąż|mama|tata|ojciec|matka|kumpel|znajomy|znajoma|sąsiad|sąsiadka|współlokator\w*|kuzyn|kuzynka|wujek|ciocia|chłopak|dziewczyna)"
THIRD_VERBS = r"(?:\w+ ){0,3}?(?:lubi|woli|uwielbia|kocha|nienawidzi|nie znosi|nie cierpi|nie lubi|używa|pisze|preferuje|chce|myśli|uważa|programuje|pracuje|mieszka|korzysta|upiera się przy|upiera się|obstaje|optuje|wybiera|nie używa|ma na imię|nazywa się)\b"
THIRD_NAME_VERBS = r"(?:(?:z|ze) \w+ )?(?:bardzo |zawsze |nigdy |naprawdę |strasznie |nie )?(?:lubi|woli|uwielbia|kocha|nienawidzi|znosi|cierpi|preferuje|chce|uważa|upiera się|twierdzi|mówi|obstaje|nalega|domaga się)\b"
THIRD_POSSESSIVE = r"(?!)"
NOT_A_PERSON = "nie tak bardzo zawsze nigdy naprawdę jednak też także wszyscy każdy nikt ja to tu my co kto"

REMEMBER = (
    r"\b(?:proszę )?(?:zapamiętaj|pamiętaj|zapisz|zanotuj|odnotuj|miej na uwadze|nie zapomnij|zakonotuj|weź pod uwagę|notuj|utrwal|wiedz|uprzedzam|uwaga)\b(?: sobie| to| w pamięci| na przyszłość| proszę)*,?(?: że|:)?",
    r"\bdla jasności\b", r"\bżebyś wiedzia\w+\b", r"\bwarto wiedzieć\b", r"\bmusisz wiedzieć\b", r"^(?:info|uwaga|notatka):",
)  # fmt: skip
SAVE_COMMAND = (
    r"^(?:i |proszę |więc |to )*(?:zapisz|zapamiętaj|zanotuj|dodaj|dopisz|wpisz) (?:to|tego|je|sobie)\b.{0,60}$", r"^(?:proszę )?(?:popraw|zmień|napraw|skoryguj) (?:to|je)\b.{0,30}$",
)  # fmt: skip
ANAPHORA = (
    r"^(?:proszę |więc |już |po prostu )*(?:przestań|nie rób (?:tego|tak)|nie chcę tego|dość|wystarczy|skończ(?: z tym)?|nigdy więcej)(?: więcej| już| proszę| tego| tak)*[.! ]*$", r"^(?:to )?(?:mnie )?(?:denerwuje|irytuje|męczy)(?: mnie)?[.! ]*$",
)  # fmt: skip
TO_RULES = (
    r"\b(?:dodaj|dopisz|wpisz|zapisz|dorzuć|umieść|wstaw)\w*\b.{0,30}\b(?:zasad\w*|reguł\w*|regul|rules|konwencj\w+|wytyczn\w+|regulamin\w*)\b", r"^(?:nowa|kolejna|jeszcze jedna) (?:zasada|reguła|konwencja)\b", r"^(?:zasada|reguła|konwencja)(?: \d+)?\s*:",
)  # fmt: skip

_UP, _LOW = "A-ZĄĆĘŁŃÓŚŹŻ", "a-ząćęłńóśźż"
NAME_CASED = (
    rf"^[Ii]mię:? [{_UP}]", rf"^[Nn]azwisko:? [{_UP}]",
    r"\b[Mm]am na imię\b", rf"\b[Nn]azywam się [{_UP}]", rf"\b(?:[Mm]ów|[Mm]ówcie|[Mm]ówią|[Zz]wracaj się|[Mm]ożesz mówić|[Mm]ożesz mi mówić|[Ww]szyscy mówią)(?: do mnie| mi| na mnie)+ (?!po |per |na |jak |w )[{_UP}][{_LOW}]+",
    rf"(?:^|[,.!] )(?:[Cc]ześć[,!]? |[Hh]ej[,!]? )?(?:[Jj]estem|[Tt]u|[Zz] tej strony) [{_UP}][{_LOW}]+\b(?!em\b)", r"\b[Mm]o(?:je|im) (?:imię|nazwisko|imieniem|nazwiskiem)\b", r"\b[Mm]am na nazwisko\b", rf"\b[Mm]ożesz (?:mówić )?mi (?:mówić )?[{_UP}]", r"\b[Ww]ołają na mnie\b",
)  # fmt: skip
NAME_WORD = r"\b(?:imię|imieniem|nazwisk\w+|nazywam się|mam na imię|w dowodzie|mówią mi|pisze się przez|przez (?:samo |zwykłe )?[a-ząćęłńóśźż]{1,2}\b)"

USER_FACT = (
    r"\b(?:słabo|źle|nie|prawie nie) (?:słyszę|widzę|czytam|rozróżniam)\b|\buczę (?:\w+ )?(?:w|na)\b|\bnie jestem (?:programist|informaty|ekspert)\w*",
    r"\bz zawodu\b|\bz wykształcenia\b|\bz pochodzenia\b", r"(?:^|[,.:;] |\b(?:i|a|ale|że|bo) )(?:ja )?(?:jestem|od \w+ (?:lat )?jestem)\b(?! (?:pewien|pewna|ciekaw|gotow|zmęczon|w trakcie|w kropce|zagubion|zadowolon|za\b|przeciw|na etapie|wdzięczn))",
    r"\b(?:mieszkam|pracuję|programuję|studiuję|uczę(?: się)?|prowadzę|pochodzę|używam|korzystam|koduję|zajmuję się|dowodzę|kieruję|wykładam|odpowiadam za|zaczynam pracę|kończę pracę|znam|mówię po|piszę (?:w|głównie|zwykle|kod)|słabo widzę|nie widzę|nie słyszę|nie znam|dojeżdżam|wstaję)\b",
    r"\bmam (?:\w+ )?(?:dysleksj\w+|adhd|alergi\w+|uczulenie|daltonizm\w*|dzieci|dziecko|dwoje|troje|syna|córkę|żonę|męża|psa|kota|lat\b|\d+ lat|słaby|stary|mały|dwa monitory|jeden monitor|laptop\w*|macbook\w*|komputer\w*|maka|windows\w*|linuks\w*|linux\w*|doświadczenie|wadę)\b",
    r"\bmo(?:ja|je|i|im|ją) (?:\w+ )?(?:strefa czasowa|strefą czasową|praca|pracą|stanowisko|stanowiskiem|zawód|zawodem|laptop|komputer|system|systemem|edytor|edytorem|język ojczysty|językiem ojczystym|zespół|firma|urodziny|telefon|klawiatura|ekran|hobby|godziny pracy|terminal|poziom)\b|\bmój (?:\w+ )?(?:laptop|komputer|system|edytor|zawód|zespół|telefon|ekran|terminal|język|poziom|szef)\b",
)  # fmt: skip
USER_FACT_NOT = (
    r"\b(?:teraz|właśnie|akurat) (?:\w+ )?(?:nad|pracuję|piszę|próbuję)\b|\b(?:pracuję|piszę) teraz\b",
    r"\bmam (?:\w+ )?(?:problem|pytanie|błąd|wątpliwoś\w+|pomysł|kłopot|plik|listę|tabelę|funkcję|skrypt|klasę|zadanie)\w*\b", r"\b(?:próbuję|dostaję|widzę błąd|nie mogę|utknąłem|utknęłam|szukam)\b", r"\bjestem (?:w trakcie|w połowie|za tym|przeciw)\b",
)  # fmt: skip
PREFERENCE = (
    r"\b(?:jedn\w+|po jedn\w+) [\w ]{2,30} naraz\b|\bnaraz,? (?:inaczej|proszę)\b",
    r"\b(?:bardzo |zdecydowanie |raczej |zwykle |zawsze |nie )*(?:wolę|wolałbym|wolałabym|preferuję|lubię|uwielbiam|nie znoszę|nie cierpię|nienawidzę|nie lubię|cenię|nie przepadam|przepadam)\b(?! (?:to\b|ten pomysł|cię|twój|ten żart))", r"\b(?:chcę|chciałbym|chciałabym|proszę|zależy mi|prosiłbym|prosiłabym),? (?:żebyś|abyś|by|żeby|o to|na tym|o (?:krótkie|krótsze|zwięzłe|dłuższe))\b",
    r"\b(?:wygodniej|łatwiej|lepiej|przyjemniej|czytelniej) (?:mi|jest mi|dla mnie)\b|\bmi (?:wygodniej|łatwiej)\b", r"\bnajbardziej (?:lubię|odpowiada mi|cenię|pasuje mi)\b|\bodpowiada mi\b|\bpasuje mi\b", r"\bmo(?:je|ja|im|ją|i) (?:ulubion|preferowan)\w+\b|\bmój (?:ulubion|preferowan)\w+\b", r"\bnie (?:chcę|potrzebuję|życzę sobie)\b",
)  # fmt: skip
ANSWERS = r"\b(?:odpowiad\w+|odpowied\w+|pisz (?:do mnie|mi|krótko|zwięźle|krócej|prosto|prostym|bez)|mów do mnie|mów mi|emoji|emotikon\w*|buźk\w+|wstęp\w*|żargon\w*|przeprasza\w*|przeprosi\w*|zwraca\w* się|per (?:pan|pani|ty)\b|na (?:ty|pan|pani)\b|zwięźle|krótko|krócej|podstaw\b|banał\w*|lani[ea] wody|ton\b|tonem|anglicyzm\w*|zdrobnie\w+|formalnie|nieformalnie|prostym językiem)\b"
ANSWERS_WEAK = r"\b(?:przykład\w*|tabel\w+|list\w?|wypunktowa\w+|nagłówk\w+|markdown\w*|podsumow\w+|streszcz\w*|tłumacz\w*|wyjaśni\w+|komentarz\w*|typy|typów|jednost\w+|żart\w*|źródł\w+|krok po kroku|szczegółow\w+|pyta\w+|linki|linków)\b"
STYLE_VERBS = r"(?:proszę )?(?:odpowiadaj|odpowiedz|pisz|mów|używaj|unikaj|pomijaj|trzymaj|zwracaj|tłumacz|wyjaśniaj|podawaj|pokazuj|stosuj|zawsze|nigdy|krótko|krótkie|tylko|bądź|zaczynaj|kończ|formatuj|zostaw|daruj|ogranicz|skracaj)"
NEGATIVE_START = r"(?:proszę )?(?:nie|nigdy|żadnych|bez|unikaj|pomijaj|przestań|mniej|zero|daruj)"
LANGUAGES = r"\bpo (?:polsku|angielsku|niemiecku|rosyjsku|ukraińsku|francusku|hiszpańsku|włosku|czesku|łacinie)\b"
LANGUAGE_ORDER = (
    r"\b(?:odpowiadaj|pisz|mów|rozmawiaj|rozmawiajmy|tłumacz|wyjaśniaj|odpisuj|komunikuj się|zwracaj się|odpowiadał\w*|pisał\w*)(?: mi| do mnie| ze mną| zawsze| tylko| wyłącznie| wszystko)* "
    + LANGUAGES
    + r"|^(?:proszę |tylko |zawsze )*"
    + LANGUAGES
    + r"[, ]*(?:proszę|tylko|zawsze|od teraz)*[.! ]*$"
)
# Polish says a lasting order in the imperfective ("pisz", "podawaj"), a task in the perfective ("napisz", "podaj").
IMPERFECTIVE = r"\b(?:odpowiadaj|pisz|mów|podawaj|pokazuj|tłumacz|wyjaśniaj|pytaj|zaczynaj|kończ|dawaj|unikaj|pomijaj|formatuj|cytuj|streszczaj|skracaj|zwracaj|traktuj|proponuj|odpisuj|uzasadniaj|komentuj|używaj|stosuj|oznaczaj|usuwaj|dodawaj|wstawiaj|sprawdzaj|zostawiaj|numeruj|podpowiadaj|wypisuj)(?:cie)?\b"
PERMANENCE = (
    r"\b(?:od teraz|od dziś|od dzisiaj|na przyszłość|w przyszłości|od tej pory|domyślnie|za każdym razem|każdorazowo|zawsze gdy|zawsze kiedy|chyba że (?:poproszę|napiszę|powiem)|dopóki nie (?:powiem|poproszę)|docelowo)\b",
    r"(?:^|[,;:] |\b(?:i|proszę|ale|a) )(?:zawsze|nigdy(?: nie)?)\b",
)  # fmt: skip
IMPERATIVE_FORM = r"(?:nie |proszę |zawsze |nigdy nie |i )*\w{2,}(?:aj|uj|ij|yj|ejcie|ajcie)\b"
TIME_START = r"(?:do|przez|w tym|w przyszłym|dziś|dzisiaj|jutro|na|najbliższ\w+|ten|cały|jeszcze)\b"
CODE_OBJECTS = r"\b(?:commit\w*|gałęzi\w*|gałąź|main|master|produkcj\w+|migracj\w+|endpoint\w*|funkcj\w+|klas\w+|moduł\w*|zmienn\w+|test\w*|plik(?:i|ów)? \.\w+|import\w*|baz\w+|schemat\w*|repo\w*|wydani\w+|zależnoś\w+|pr\b|kwot\w+|dat[yę]\b)\b"
WE_VERB = r"\b(?!(?:mamy|możemy|chcemy|idziemy|jedziemy|wiemy|widzimy|czekamy|próbujemy|problemy|systemy|programy|schematy|ramy|filmy|formy|firmy|normy|reklamy|diagramy|tematy|mikrofilmy|znamy|umiemy|musimy|zobaczymy|kumamy|jestesmy|dostajemy|szukamy|diagnozujemy|zastanawiamy|rozwazamy|myslimy|sprobujmy|szacujemy)\b)\w{3,}(?:emy|imy|ymy|amy)\b"
WE = r"(?:\b(?!(?:mamy|możemy|chcemy|idziemy|jedziemy|wiemy|widzimy|czekamy|próbujemy|problemy|systemy|programy|schematy|ramy|filmy|formy|firmy|normy|reklamy|diagramy|tematy|mikrofilmy|znamy|umiemy|musimy|zobaczymy|kumamy|jestesmy|dostajemy|szukamy|diagnozujemy|zastanawiamy|rozwazamy|myslimy|sprobujmy|szacujemy)\b)\w{3,}(?:emy|imy|ymy|amy)\b|\bu nas\b|\bnasz\w*\b|\b(?:ustaliliśmy|zdecydowaliśmy)\b)"
FIRST_SUBJECT = r"\b(?:ja|mój|moja|moje|moim|moją|mojego|mojej|jestem|mam|mi|mnie|pracuję|mieszkam|wolę|lubię|używam|chcę|programuję|będę|byłem|byłam|nazywam|szukam|myślę|pokłóciłem|wyjeżdżam|biorę|piszę|robię|preferuję|uczę|zajmuję|korzystam|dojeżdżam|studiuję|pochodzę|prowadzę)\b"
IMPERATIVE = (
    "uruchom odpal pokaż napraw popraw dodaj stwórz utwórz napisz wyjaśnij zrób wypisz znajdź zmień usuń otwórz daj powiedz pomóż sprawdź zaktualizuj przenieś wygeneruj przetłumacz streść podsumuj porównaj "
    "przejrzyj zdebuguj wdróż zainstaluj przeczytaj wyświetl sformatuj wyszukaj zamień spróbuj użyj napisz odpowiadaj odpowiedz pisz mów używaj unikaj pomijaj pytaj zacznij przestań skończ zostaw wyłącz włącz "
    "nie proszę zawsze nigdy trzymaj stosuj podawaj pokazuj zwracaj tłumacz podaj zapisuj wstaw posortuj policz oblicz opisz zdefiniuj wczytaj wyślij pobierz cofnij przywróć połącz podziel powtórz kontynuuj "
    "zrefaktoruj skróć rozwiń dopisz przepisz zaimplementuj przetestuj zbuduj wgraj wypchnij scal rozwiąż zaproponuj wymień"
)
LEARNED = (
    r"\b(?:znowu|znów|ponownie|kolejny raz|po raz kolejny|ciągle|wciąż|stale|cały czas|nadal) (?:mi )?\w{3,}(?:sz|łeś|łaś|asz|esz|isz|ysz)\b", r"\b\w{3,}(?:asz|esz|isz|ysz) (?:mi )?(?:znowu|znów|ciągle|wciąż|stale|cały czas|za każdym razem)\b", r"\bprzestań \w+(?:ać|ić|yć|eć|ować)\b", r"\bnie rób (?:tego|tak) więcej\b", r"\b(?:więcej|już) (?:tak |tego )?nie rób\b",
    r"\b(?:skończ|dość|koniec) (?:już )?(?:z|tego|tych) \w+", r"\b(?:już |przecież )?(?:mówiłem|mówiłam|prosiłem|prosiłam|pisałem|pisałam)\b", r"\bile (?:razy|można)\b", r"\bnastępnym razem\b", r"\bnie \w+(?:aj|uj|ij|yj) (?:mi )?(?:już|więcej) \w+",
)  # fmt: skip
CORRECTION_START = (
    r"(?:nie|poprawka|pomyłka|korekta|sprostowanie|błąd|właściwie|źle|a nie|mylisz się|to nieprawda|nieprawda)\b[,:. -]"
)
CORRECTION = (
    r"^(?:poprawka|pomyłka|korekta|sprostowanie|nieprawda)\b", r"\b(?:źle|błędnie|niepoprawnie|nie tak) (?:zapamiętał\w+|zapisał\w+|zrozumiał\w+|pamiętasz|napisał\w+)\b", r"\b(?:to|to jest) (?:nieprawda|błąd|nie tak|pomyłka|nieaktualne)\b", r"\b(?:mylisz|pomyliłeś|pomyliłaś|mylisz się|pomyliło)\b",
    r"\b(?:mówiłem|mówiłam|chodziło mi|miałem na myśli|miałam na myśli)\b", r"^nie [^,.]{2,30}, (?:tylko|ale|a|lecz)\b", r"\bpopraw to\b", r"\b(?:napisałeś|napisałaś|zapisałeś|zapisałaś) [^,]{2,40}, (?:a|ale)\b",
)  # fmt: skip
CONTRAST = (
    r"\b(?:napisałeś|napisałaś|zapisałeś|zapisałaś) [^,]{2,40}, (?:a|ale)\b",
    r", (?:a )?nie (?!jestem|wiem|mam|ma|jest|chcę|lubię|rób|ruszaj|zapis|zapamięt|używaj|trzeba|można|musi|da się|wdraż)\w",
    r"\bnie [^,.]{2,30}, (?:tylko|ale|a|lecz)\b",
    r"\bzamiast\b",
)
CORRECTION_NOT = r"\bnie o to (?:mi )?chodzi\w*|\bnie to (?:miałem|miałam)\b|\bnie (?:działa|pomaga|pomogło|kompiluje|uruchamia|zadziałało|widać)\b|^nie[, ]+(?:dzięki|dziękuję|trzeba|wiem|mam|chcę|nie\b|o to|szkodzi|musisz)"
PROJECT_NOUNS = r"(?:projekt\w*|aplikacj\w+|narzędzi\w+|serwis\w*|usług\w+|bibliotek\w+|stron\w+|witryn\w+|bot\w*|platform\w+|system\w*|wtyczk\w+|gr[aąęy]|pakiet\w*|produkt\w*|framework\w*|silnik\w*|panel\w*|portal\w*|program\w*|moduł\w*|sklep\w*|skrypt\w*|klient\w*|serwer\w*|baz\w+|api|cli)"
PROJECT_CASED = (
    rf"^(?:[Pp]rojekt )?[„\"«]?(?P<name1>[{_UP}][\w-]+)[”\"»]? (?:to|jest to|—|–|-) (?:(?:nasz\w*|mój|moja|moje|mał\w+|wewnętrzn\w+|[\w-]+) ){{0,4}}?{PROJECT_NOUNS}\b",
    rf"\b(?:[Pp]rojekt|[Aa]plikacja|[Ss]ystem|[Nn]arzędzie|[Ss]erwis|[Rr]epozytorium) (?:nazywa się|ma nazwę|nosi nazwę) [„\"«]?(?P<name2>[{_UP}][\w-]+)",
    rf"^(?:[Nn]asz|[Nn]asza|[Nn]asze|[Mm]ój|[Mm]oja|[Mm]oje) {PROJECT_NOUNS},? [„\"«]?(?P<name5>[{_UP}][\w-]+(?: [{_UP}][\w-]+)?)[”\"»]?,? (?:to|jest|służy|—|–|-)",
    rf"\b(?:[Pp]racujemy|[Pp]racuję) nad [„\"«]?(?P<name3>[{_UP}][\w-]+)[”\"»]?[,:—–]", rf"\b(?:[Bb]udujemy|[Tt]worzymy|[Rr]obimy|[Pp]iszemy|[Rr]ozwijamy|[Tt]worzę|[Pp]iszę|[Rr]obię) (?:(?:projekt|aplikację|system|narzędzie|bota) )?[„\"«]?(?P<name4>[{_UP}][\w-]+)[”\"»]?(?:,| —| –| -|:)",
)  # fmt: skip
PROJECT = (
    r"^(?:ten|nasz|to) (?:projekt|repo|repozytorium|system|program) (?:to|jest|służy|obsługuje|robi|zbiera|liczy)\b", rf"\b(?:budujemy|tworzymy|rozwijamy|tworzę|buduję) (?:\w+ ){{0,2}}{PROJECT_NOUNS} (?:do|dla|która|który|które|z)\b",
)  # fmt: skip
DECISION = (
    r"^(?!(?:mieliśmy|byliśmy|próbowaliśmy|chcieliśmy|zobaczyliśmy|dostaliśmy|rozmawialiśmy|widzieliśmy|znaleźliśmy|mogliśmy|musieliśmy|myśleliśmy|straciliśmy)\b)\w{3,}(?:liśmy|łyśmy)\b", r"\bz \w+ (?:\w+ )?(?:ustaliłem|ustaliłam|uzgodniłem|uzgodniłam)\b",
    r"\b(?:bierzemy|wylatuje|wylatują|wchodzi zamiast|zajmuje (?:jego|jej|ich) miejsce|miejsce zajmuje|klamka zapadła|stanęło na|wyszło,? że|idziemy w|zastępuje|zastępujemy|wyrzucamy|odstawiamy|żegnamy|zostaje nam)\b",
    r"\b(?:ustaliliśmy|uzgodniliśmy|zdecydowaliśmy|postanowiliśmy|wybraliśmy|odrzuciliśmy|zrezygnowaliśmy|porzuciliśmy|przeszliśmy|przenieśliśmy|zamieniliśmy|zostawiliśmy|umówiliśmy|przyjęliśmy|wycofaliśmy|stanęło na|wyszło na to)\b", r"\b(?:zdecydowałem|zdecydowałam|postanowiłem|postanowiłam|wybrałem|wybrałam|rezygnuję|ustaliłem|ustaliłam|przeszedłem|przeszłam)\b",
    r"\b(?:rezygnujemy|przechodzimy|zostajemy (?:przy|na)|przenosimy|porzucamy|wybieramy|wycofujemy|odchodzimy|stawiamy na|migrujemy|wchodzimy w|przesiadamy|kończymy z|wyrzucamy|odpuszczamy|pomijamy|usuwamy wsparcie|zamieniamy|będziemy (?:używać|trzymać|robić|pisać|korzystać))\b",
    r"^(?:decyzja|ustalenie|postanowione|ustalone|zdecydowane|uzgodnione|werdykt|ostatecznie|zapadła decyzja)\b(?: jest taka| zapadła)?\s*[:,—–-]?", r"\b(?:odpada|odpadają|zostaje (?:jeden|jedna|przy)|nie wchodzi w grę|jest wykluczone)\b", r"\b(?:zostańmy przy|przejdźmy na|zrezygnujmy|porzućmy|pomińmy|użyjmy|wybierzmy|trzymajmy się)\b", r"\bnie wspieramy\b|\bnie będziemy\b",
)  # fmt: skip
CONVENTION = (
    r"^nikt nie \w+|\bnie (?:pushujemy|commitujemy|mergujemy|wdrażamy|wypychamy|ruszamy|dotykamy|używamy|stosujemy)\b", r"\b(?:mają|ma|muszą|musi) być (?:po|w|na|z|pisan|nazwan|zawsze|wersjonowan|opisan|krótk)\w*", r"^nasz\w* [\w ]{3,40} (?:są|jest|mają|ma|piszemy|zaczynają|kończą)\b",
    r"\bw (?:tym|naszym) (?:projekcie|repo|repozytorium|zespole|kodzie|module)\b", r"(?:^|[,;:] )u nas\b", r"\b(?:każda|każdy|każde|każdą|wszystkie|wszystko|żaden|żadna|żadne|żadnych) \w+", r"\b(?:zawsze|nigdy(?: nie)?|wyłącznie|jedynie) \w+(?:emy|imy|ymy|amy|ane|any|ana|one|ony|ona)\b",
    r"\b(?:musi|muszą|powinien|powinna|powinno|powinny|nie może|nie mogą|nie wolno|ma|mają) (?:zawsze |tylko |mieć|być|zaczynać|kończyć|zawierać|przechodzić|trafiać|używać)\b", r"\b(?:kończy|kończą|zaczyna|zaczynają) się (?:na|od|w|z|przedrostkiem|przyrostkiem)\b", r"\b(?:nazywamy|zapisujemy|piszemy|trzymamy|przechowujemy|generujemy|stosujemy|commitujemy|wdrażamy|testujemy|robimy|używamy|formatujemy|wersjonujemy|logujemy|odpalamy|wrzucamy|umieszczamy|podpisujemy|podajemy)\b",
    r"\b(?:są|jest|bywają|mają być) (?:zawsze |tylko )?(?:pisane|trzymane|przechowywane|generowane|nazywane|zapisywane|podpisywane|wdrażane|wersjonowane|formatowane)\b", r"\bnasz\w* (?:konwencj|zasad|reguł|standard|polityk|styl)\w*", r"\bprzyjęte jest\b|\bprzyjęło się\b|\bobowiązuje\b|\bpilnujemy\b", r"^(?:żadnych|zero|bez) \w+",
)  # fmt: skip
PROBLEM = r"\b(?:gubi|psuje|pada|wywala|wysypuje|zawiesza|wiesza|nie działa|nie radzi|krztusi|ucina|obcina|łamie|przekręca|traci|wybucha|sypie|rzuca|krzaczy|zjada|przerywa|blokuje|dławi|wykłada|myli|nie obsługuje|odrzuca|nie przechodzi|nie idzie|nie wstaje|nie startuje|działa tylko|nie kompiluje się|nie buduje się)\b"
PROBLEM_WHEN = r"\b(?:gdy|kiedy|jeśli|jeżeli|przy|na|dla|z|zawsze|po|w|podczas|polskie|znaki|bo)\b"
WORKAROUND = r"\b(?:trzeba|należy|musimy|więc|wtedy|najpierw|obejście|obchodzimy|zamieniamy|usuwamy|pomaga|wymuszać|wymuszamy|restartujemy|konwertujemy|dzielimy|zamiast|czyścimy|warto|trzymaj\w*|trzymamy|używaj\w*|ustawiamy|wyłączamy|ponawiamy)\b"

STATE_NOT = r"\b(?:licencj\w*|minimum|maksimum|minimaln\w*|maksymaln\w*|co najmniej|przynajmniej|co najwyżej|nie więcej niż|środowisk\w*|gałęzi\w*|etap\w*|rodzaj\w*|typ\w*|tryb\w*|poziom\w*|warstw\w*|zasad\w*|ról|krok\w*|akceptacj\w+|musi|muszą|powinien|powinna|każd\w+|zawsze|nigdy|zdań|zdania|linijek|wierszy tekstu)\b"
STATE_COUNT = (
    r"\b(?:mamy|jest|są|było|zostało|zostały|liczy|ma|mają|brakuje|czeka|wisi|zawiera|pracuje|przybyło|ubyło) (?:teraz |obecnie |już |jeszcze |tylko |około |ponad |aktualnie |w sumie |razem |dokładnie |łącznie )*{n}\b(?! (?:dzieci|synów|córki|koty|psy|lat\b|monitor))",
    r"\b{n} (?:otwart|niezamknięt|zaległ|nieprzeczytan|oczekując|nierozwiązan|aktywn|pozostał)\w*", r"\b{n} (?:\w+ )?(?:osób|ludzi|zgłoszeń|ticketów|zadań|błędów|klientów|zamówień|wiadomości|rekordów|wierszy|użytkowników|pull requestów|pozycji|sztuk|testów)(?: (?:jest|czeka|wisi|zostało|teraz)|[.! ]*$)",
)  # fmt: skip
STATE_STATUS = (
    r"\btesty (?:nie )?przechodzą\b",    r"\b(?:ticket|zgłoszenie|build|pr|zadanie|błąd|zamówienie|job|karta|incydent|faktura|mr)\w* (?:nr |numer |#)?(?:[a-z]+-)?#?\d+\b[^.!?]{0,40}\b(?:jest|są|dalej|wciąż|nadal|czeka\w*|padł\w*|nie przesz\w+|przesz\w+|wisi|wrócił\w*)\b", r"\b(?:spadł|spadła|spadło|spadły|wzrósł|wzrosła|wzrosło|wzrosły|podskoczył\w*|urósł|urosła|urosło) (?:\w+ )?(?:do|o|z) \d", r"^[\w.-]+ (?:znowu|znów|dalej|wciąż|nadal|od rana|od wczoraj) (?:leży|nie działa|wisi|pada|stoi|padł\w*)\b",
    r"\b(?:projekt|projekty|build|buildy|wdrożenie|wdrożenia|serwer|serwery|pipeline|ci|testy|test|sprint|baza|strona|api|produkcja|staging|release|wydanie|zadanie|migracja|deploy|usługa|serwis|klaster|kolejka|dysk|sieć|vpn|drukarka|backup|zamówienie|dostawa|premiera|termin|gałąź|pr|sklep|aplikacja|środowisko|backend|frontend|zgłoszenie|ticket|faktura)\b"
    r"[^.!?]{0,40}?\b(?:jest (?:\w+ )?(?:czerwon|zielon|opóźnion|zablokowan|zepsut|gotow|wstrzyman|zakończon|niedostępn|pełn|offline|online|w toku|przeciążon|zawieszon|spóźnion|zamknięt|otwart|w trakcie|po terminie)\w*|są (?:\w+ )?(?:czerwon|zielon|opóźnion|zablokowan|zepsut|gotow|wstrzyman|zakończon|niedostępn|offline|online)\w*|czerwon\w+|nie działa\w*|nie przechodz\w+|leży|leżą|padł\w*|padają|pada\b|stoi|stoją|wisi|opóźni\w*|spóźni\w*|ma opóźnienie|mają opóźnienie|się opóźnia\w*|się przesunie|się przesunął|przesunięt\w+|kończy się (?:w|jutro|dziś|za)|ruszy|ruszą|wróci\w*|działa (?:wolno|znowu|już)|nie odpowiada\w*)",
    r"\b(?:nie działa|nie działają|leży|wisi|padł\w*|jest czerwon\w+|stoi)\b.{0,20}\bod (?:rana|wczoraj|dziś|wieczora|godziny|tygodnia|poniedziałku|\w+ (?:dni|godzin))\b", r"\b(?:po terminie|do tyłu z|poza harmonogramem|przed harmonogramem|opóźni\w+ się o|spóźni\w+ się o|ma \w+ (?:dni|tygodni\w*|miesiąc\w*) opóźnienia)\b", r"\bna \d[\d.,]* ?(?:%|procent)", r"\bw tej chwili\b", r"\b(?:wydanie|premiera|termin|wdrożenie|release|demo)\b[^.!?]{0,30}? (?:jest |będzie |mamy |przypada |wypada )?(?:w|we|na) (?:przyszły |przyszłą |ten |tę |najbliższ\w+ )?(?:poniedziałek|wtorek|środę|czwartek|piątek|sobotę|niedzielę)\b",
)  # fmt: skip
# Parts of a project, and whatever else a tool counts; with an adjective or two between number and noun.
STATE_PARTS = r"(?:pod)?(?:moduł\w*|pakiet\w*|(?:mikro)?serwis\w*|(?:mikro)?usług\w*|aplikacj\w*|komponent\w*|bibliotek\w*|warstw\w*|repozytori\w+|folder\w*|katalog\w*|serwer\w*|wtycz\w+|częś\w+|baz\b|bazy\b)"
STATE_AMOUNT = (
    r"\b(?:ma|liczy|zawiera|posiada|obejmuje|składa się z|dzieli się na|jest podzielon\w+ na) (?:teraz |obecnie |około |ponad |dokładnie |łącznie |w sumie |aż |tylko )*{n} (?:[\w-]+ ){0,2}?(?:" + STATE_PARTS + r"|endpoint\w*|test(?:y|ów)\b|lini\w+|linijek\b|wierszy\b|tabel\w*|plik\w*|klas\w*|funkcj\w+|metod\w*|commit\w*|kontrybutor\w*|gwiazdek\b|gwiazdki\b|użytkownik\w*|kolumn\w*|zależnoś\w+|ekran\w*|widok\w*|kontener\w*)",
    r"\bjest nas (?:teraz |obecnie |już |tylko |w zespole |w firmie )*{n}\b",
    r"\bpokrycie (?:kodu |testami |kodu testami )*(?:to|wynosi|jest na|mamy na poziomie|sięga|:|—|-)? ?(?:teraz |około |ok\.? )*\d[\d.,]* ?(?:%|proc)",
    r"\b(?:aktualn\w+|obecn\w+|bieżąc\w+|najnowsz\w+|ostatni\w*) (?:wersja|wydanie|commit|release|tag|build)(?: \w+){0,2}? (?:to|jest|ma numer|nosi numer) (?:v?\d|[0-9a-f]{7})",
)  # fmt: skip
STATE_NOW = r"\b(?:teraz|obecnie|aktualnie|chwilowo|nadal|wciąż|dalej|ciągle|znowu|znów|dziś|dzisiaj|wczoraj|od (?:rana|wczoraj|dziś|dzisiaj|wieczora|nocy|południa|poniedziałku|wtorku|środy|czwartku|piątku|soboty|niedzieli|tygodnia|\w+ (?:dni|godzin\w*|tygodni)))\b"
OURS = r"(?:nasz(?:a|e|ego|ej|ych|ym|ymi|i)?\b|u nas\b)"
_PLACES = r"piwnic\w*|biur\w*|serwerown\w*|pietrz\w*|pietro|parterz\w*|rynku|chmurz\w*|szaf\w*|katalog\w*|folder\w*|repo\b|repozytori\w+|porcie|dysku|klastrz\w*|klienta|hal\w*|magazynie|regionie|budynku|pokoju|centrali|siedzib\w+|centrum danych|maszynie|serwerze|strych\w*"
STATE_PLACE = rf"(?i:\b(?:stoi|stoją|leży|leżą|wisi|wiszą|mieści się|mieszczą się|znajduje się|znajdują się|jest|są|działa|działają|chodzi) (?:w|we|na|za|przy|pod|u|obok|koło|poza)) (?:[A-Z][\w.-]+|(?:[\w-]+ ){{0,3}}?(?i:{_PLACES})(?!\w))"
# What has no place of its own waits there: a ticket that hangs in a tracker is a status.
_THINGS = r"serwer(?:y)?|baz[ay]|stron[ay]|api|produkcja|staging|usług[ai]|serwis(?:y)?|klaster|klastry|dysk(?:i)?|sieć|vpn|drukark[ai]|backup(?:y)?|kopi[ea]|sklep(?:y)?|aplikacj[ae]|środowisk[oa]|backend|frontend|dokumentacja|kod|repozytorium|biuro|ci"
_WEEKDAYS = r"poniedziałki|wtorki|środy|czwartki|piątki|soboty|niedziele|weekendy|święta|dni robocze"
# Said for good, though the words are those of a status: taken out before a status is looked for.
STATE_LASTING = (
    rf"(?:^|(?<=[,;] )|(?<= i ))(?i:(?:nasz\w* |ten |ta |to )?(?:\w+ )?(?:{_THINGS}))\b(?!.*(?i:\bod \w+ \w*dni))(?: [\w-]+){{0,3}}? " + STATE_PLACE,
    rf"(?i:\b(?:kończy się|kończą się|zaczyna się|rusza|ruszają|jest otwart\w+|są otwart\w+|jest zamknięt\w+|są zamknięt\w+|jest czynn\w+) (?:\w+ )?(?:w|we) (?:{_WEEKDAYS})\b)",
    r"(?i:\b(?:jest|są) (?:otwart|zamknięt)\w+ dla \w+)",
)  # fmt: skip
FIRST_PERSON = r"\b(?:ja|mnie|mi|mną|mój|moja|moje|moim|moją|mojego|jestem|mam|pracuję|będę|odpowiadam|wyjeżdżam|wracam|piszę|byłem|byłam|biorę|robię|zastępuję|dyżuruję|pełnię|lecę|jadę|urlopuję|nie ma mnie|siedzę|leżę|choruję|wyjeżdżam|przebywam|działam|uczę)\b"
VERSIONED = r"\b(?:używamy|korzystamy z|działa na|działamy na|stoi na|stoimy na|jedziemy na|oparte na|opiera się na|wymaga|mamy|chodzi na|pracujemy na|projekt (?:używa|wymaga))\b"

SUBJECTS = {
    "package manager": r"\b(?:wolę|używam|używamy|przechodzimy na|przeszliśmy na|wybraliśmy) (?:npm|pnpm|yarn|bun|pip|poetry|uv|conda)\b(?!.* (?:i|do|oraz) )",
    "reply language": r"\b(?:odpowiadaj|odpowiadał\w*|pisz|mów|rozmawiaj)\b.{0,30}" + LANGUAGES,
    "answer length": r"\b(?:odpowiedzi|odpowiadaj|pisz)\b.*\b(?:krótk\w+|krótko|zwięź\w+|zdań|zdania|linijek)\b|\b(?:krótk\w+|zwięzł\w+) odpowied\w+",
    "emoji": r"\bemoji\b",
    "time zone": r"\bstref\w+ czasow\w+",
    "editor": r"\bmój edytor to\b",
    "residence": r"\bmieszkam w\b",
    "occupation": r"\bz zawodu\b|\bpracuję jako\b",
    "form of address": r"\bper (?:pan|pani|ty)\b|\b(?:zwracaj\w* się|mów) .*\bna (?:ty|pan|pani)\b",
}
SAVE_CLAIM = (
    r"\b(?:zapisałem|zapisałam|zapamiętałem|zapamiętałam|zanotowałem|zanotowałam|odnotowałem|odnotowałam|dodałem (?:to |do (?:pamięci|notatek|zasad|reguł|preferencji|profilu))|dodałam (?:to |do (?:pamięci|notatek|zasad|reguł|preferencji|profilu))|dopisałem|dopisałam|zachowałem|zachowałam|zaktualizowałem (?:pamięć|notat\w+|profil|preferencj\w+|zasad\w+)|zaktualizowałam (?:pamięć|notat\w+|profil|preferencj\w+|zasad\w+))\b", r"\b(?:zapamiętam|zapisuję|zapamiętuję|notuję|odnotowuję|będę (?:o tym )?pamięta\w+|zapiszę|zanotuję)\b",
    r"^(?:ok(?:ej)?|jasne|dobrze|super|gotowe|rozumiem)?[,.! ]*(?:zapisane|zapamiętane|zanotowane|odnotowane|zapisano|zapamiętano|zanotowano|odnotowano)\b", r"\bzostał\w* (?:zapisan|zapamiętan|zanotowan|odnotowan|dodan\w+ do (?:pamięci|notatek|zasad|preferencji))\w*", r"\b(?:zapisane|zapisano|dodane|dodano|dopisano) (?:to |w |do |je )+(?:pamięci|notat\w+|zasad\w*|preferencj\w+|profilu|plik\w*)",
)  # fmt: skip
SAVE_DENIAL = r"\b(?:nie|nic|niczego|jeśli|jeżeli|czy|mogę|gdybyś|chcesz|udało się nie)\b"
