"""Three generators of long agent runs with known answers, in English, Polish and Russian.

They were fixed before anything was tuned. What is asked for is drawn evenly from what was said, without looking at
scores, kinds or zones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

LANGUAGES = ("en", "pl", "ru")
STEPS = 300


@dataclass(frozen=True)
class Add:
    """An item enters. ``key`` names it when it holds a fact; ``answer`` is the sentence that must be in the prompt."""

    kind: str
    text: str
    summary: str = ""
    key: str = ""
    answer: str = ""


@dataclass(frozen=True)
class Goal:
    text: str


@dataclass(frozen=True)
class Ask:
    """A question, and the key of the item that answers it."""

    question: str
    key: str


Step = Add | Goal | Ask

# --- prose: places, what can be said of them, how it is asked ---------------------------------------------

# Forms: nominative, genitive, locative (English has one form).
PLACES = {
    "en": [
        (f"the {place}",) * 3
        for place in (
            "Hamburg office",
            "Lyon warehouse",
            "night shift",
            "billing team",
            "harbour archive",
            "southern depot",
            "print shop",
            "repair hall",
            "customs desk",
            "glass laboratory",
            "student library",
            "mountain station",
            "old bakery",
            "river ferry",
            "postal centre",
            "frozen store",
            "seed bank",
            "tram garage",
            "radio tower",
            "village clinic",
        )
    ],
    "pl": [
        ("biuro w Hamburgu", "biura w Hamburgu", "biurze w Hamburgu"),
        ("magazyn w Lyonie", "magazynu w Lyonie", "magazynie w Lyonie"),
        ("nocna zmiana", "nocnej zmiany", "nocnej zmianie"),
        ("zespół rozliczeń", "zespołu rozliczeń", "zespole rozliczeń"),
        ("archiwum portowe", "archiwum portowego", "archiwum portowym"),
        ("południowa zajezdnia", "południowej zajezdni", "południowej zajezdni"),
        ("drukarnia", "drukarni", "drukarni"),
        ("hala napraw", "hali napraw", "hali napraw"),
        ("odprawa celna", "odprawy celnej", "odprawie celnej"),
        ("laboratorium szkła", "laboratorium szkła", "laboratorium szkła"),
        ("biblioteka studencka", "biblioteki studenckiej", "bibliotece studenckiej"),
        ("stacja górska", "stacji górskiej", "stacji górskiej"),
        ("stara piekarnia", "starej piekarni", "starej piekarni"),
        ("prom rzeczny", "promu rzecznego", "promie rzecznym"),
        ("centrum pocztowe", "centrum pocztowego", "centrum pocztowym"),
        ("chłodnia", "chłodni", "chłodni"),
        ("bank nasion", "banku nasion", "banku nasion"),
        ("garaż tramwajów", "garażu tramwajów", "garażu tramwajów"),
        ("wieża radiowa", "wieży radiowej", "wieży radiowej"),
        ("wiejska przychodnia", "wiejskiej przychodni", "wiejskiej przychodni"),
    ],
    "ru": [
        ("офис в Гамбурге", "офиса в Гамбурге", "офисе в Гамбурге"),
        ("склад в Лионе", "склада в Лионе", "складе в Лионе"),
        ("ночная смена", "ночной смены", "ночной смене"),
        ("отдел расчётов", "отдела расчётов", "отделе расчётов"),
        ("портовый архив", "портового архива", "портовом архиве"),
        ("южное депо", "южного депо", "южном депо"),
        ("типография", "типографии", "типографии"),
        ("ремонтный цех", "ремонтного цеха", "ремонтном цехе"),
        ("таможенный пост", "таможенного поста", "таможенном посту"),
        ("стекольная лаборатория", "стекольной лаборатории", "стекольной лаборатории"),
        ("студенческая библиотека", "студенческой библиотеки", "студенческой библиотеке"),
        ("горная станция", "горной станции", "горной станции"),
        ("старая пекарня", "старой пекарни", "старой пекарне"),
        ("речной паром", "речного парома", "речном пароме"),
        ("почтовый центр", "почтового центра", "почтовом центре"),
        ("морозильный склад", "морозильного склада", "морозильном складе"),
        ("банк семян", "банка семян", "банке семян"),
        ("трамвайный гараж", "трамвайного гаража", "трамвайном гараже"),
        ("радиобашня", "радиобашни", "радиобашне"),
        ("сельская клиника", "сельской клиники", "сельской клинике"),
    ],
}

# Fact, question, values. {n} nominative, {g} genitive, {l} locative, {v} value.
FACTS = {
    "en": [
        (
            "The gate of {n} is unlocked at {v} in the morning.",
            "What time can people get into {n}?",
            ["five", "six", "half past six", "seven", "eight"],
        ),
        (
            "Whoever has a complaint about {n} writes to {v}.",
            "Who takes care of complaints about {n}?",
            ["Agnes", "Boris", "Claire", "Dmitri", "Ewa"],
        ),
        (
            "Labels at {n} are printed on {v} paper.",
            "Which colour is the paper used for labels in {n}?",
            ["green", "yellow", "grey", "pink", "blue"],
        ),
        (
            "Copies from {n} stay in the cellar for {v} weeks.",
            "How long are the copies of {n} kept?",
            ["two", "three", "nine", "twelve", "forty"],
        ),
        (
            "The lights went out at {n} because {v} had chewed the cable.",
            "Why was there no electricity in {n}?",
            ["a marten", "a rat", "a squirrel", "the dog", "a beaver"],
        ),
        (
            "Visitors of {n} must first wash their {v}.",
            "What do guests of {n} have to clean before they enter?",
            ["boots", "hands", "bicycles", "lenses", "buckets"],
        ),
    ],
    "pl": [
        (
            "Brama {g} jest otwierana o {v} rano.",
            "O której godzinie można wejść: {n}?",
            ["piątej", "szóstej", "wpół do siódmej", "siódmej", "ósmej"],
        ),
        (
            "Kto ma skargę na to, jak działa {n}, pisze do {v}.",
            "Kto zajmuje się skargami dotyczącymi {g}?",
            ["Agnieszki", "Borysa", "Klary", "Dymitra", "Ewy"],
        ),
        (
            "Etykiety w {l} drukuje się na {v} papierze.",
            "Jakiego koloru papieru na etykiety używa {n}?",
            ["zielonym", "żółtym", "szarym", "różowym", "niebieskim"],
        ),
        (
            "Kopie z {g} leżą w piwnicy przez {v} tygodni.",
            "Jak długo przechowuje się kopię {g}?",
            ["pięć", "sześć", "dziewięć", "dwanaście", "czterdzieści"],
        ),
        (
            "W {l} zgasło światło, bo {v} pogryzła kabel.",
            "Dlaczego nie było prądu w {l}?",
            ["kuna", "mysz", "wiewiórka", "suka", "nutria"],
        ),
        (
            "Goście {g} muszą najpierw umyć {v}.",
            "Co trzeba wyczyścić przed wejściem do {g}?",
            ["buty", "ręce", "rowery", "soczewki", "wiadra"],
        ),
    ],
    "ru": [
        (
            "Ворота {g} открывают в {v} утра.",
            "Во сколько можно войти: {n}?",
            ["пять", "шесть", "половине седьмого", "семь", "восемь"],
        ),
        (
            "Если есть жалоба на то, как работает {n}, пишут {v}.",
            "Кто занимается жалобами насчёт {g}?",
            ["Агнессе", "Борису", "Кларе", "Дмитрию", "Еве"],
        ),
        (
            "Этикетки в {l} печатают на {v} бумаге.",
            "Какого цвета бумага для этикеток у {g}?",
            ["зелёной", "жёлтой", "серой", "розовой", "синей"],
        ),
        (
            "Копии из {g} лежат в подвале {v} недель.",
            "Как долго хранится копия {g}?",
            ["пять", "шесть", "девять", "двенадцать", "сорок"],
        ),
        (
            "В {l} погас свет, потому что {v} перегрызла кабель.",
            "Почему не было электричества в {l}?",
            ["куница", "мышь", "белка", "собака", "нутрия"],
        ),
        (
            "Посетители {g} сначала моют {v}.",
            "Что нужно почистить перед входом в {l}?",
            ["сапоги", "руки", "велосипеды", "линзы", "вёдра"],
        ),
    ],
}

PADDING = {
    "en": [
        "The rest of the page is about the weather of last week.",
        "Nothing else was decided that day.",
        "The list was checked twice and nobody objected.",
        "Somebody promised to look at it again after the holidays.",
        "The reading of the meter was the same as before.",
        "The minutes were sent to everybody by the secretary.",
        "A short break followed, with coffee.",
        "The wind turned to the west in the afternoon.",
        "There was a long talk about chairs.",
        "The report ends with a drawing of a cat.",
    ],
    "pl": [
        "Reszta strony mówi o pogodzie z zeszłego tygodnia.",
        "Tego dnia nic więcej nie ustalono.",
        "Listę sprawdzono dwa razy i nikt nie protestował.",
        "Ktoś obiecał spojrzeć na to jeszcze raz po świętach.",
        "Stan licznika był taki sam jak wcześniej.",
        "Protokół rozesłał wszystkim sekretarz.",
        "Potem była krótka przerwa na kawę.",
        "Po południu wiatr zmienił się na zachodni.",
        "Długo rozmawiano o krzesłach.",
        "Raport kończy się rysunkiem kota.",
    ],
    "ru": [
        "Остальная часть страницы о погоде прошлой недели.",
        "Больше в тот день ничего не решили.",
        "Список проверили дважды, и никто не возражал.",
        "Кто-то обещал посмотреть ещё раз после праздников.",
        "Показания счётчика были такими же, как раньше.",
        "Протокол разослал всем секретарь.",
        "Потом был короткий перерыв на кофе.",
        "После обеда ветер сменился на западный.",
        "Долго говорили о стульях.",
        "Отчёт кончается рисунком кота.",
    ],
}

NOISE = {
    "en": [
        "Round {i}: somebody passed by {n}, all quiet there.",
        "Entry {i}: a parcel for {n} arrived and was put on the shelf.",
        "Call {i} from {n}: nothing new to report.",
    ],
    "pl": [
        "Obchód {i}: ktoś przechodził, {n} bez zmian.",
        "Wpis {i}: przyszła paczka dla {g} i leży na półce.",
        "Telefon {i} z {g}: nic nowego.",
    ],
    "ru": [
        "Обход {i}: кто-то проходил мимо, {n} без изменений.",
        "Запись {i}: пришла посылка для {g}, лежит на полке.",
        "Звонок {i} из {g}: ничего нового.",
    ],
}

PROSE_KINDS = ["log", "tool_output", "test_result", "file", "edit", "note"]


def _padded(source: random.Random, language: str, sentence: str, low: int, high: int) -> str:
    sentences = [source.choice(PADDING[language]) for _ in range(source.randint(low, high))]
    sentences.insert(source.randrange(len(sentences) + 1), sentence)
    return " ".join(sentences)


def _prose_facts(source: random.Random, language: str) -> Iterator[tuple[str, str]]:
    """``(fact, question)`` in random order, each place and attribute once."""
    pairs = [(place, fact) for place in PLACES[language] for fact in FACTS[language]]
    source.shuffle(pairs)
    for (n, g, loc), (fact, question, values) in pairs:
        sentence = fact.format(n=n, g=g, l=loc, v=source.choice(values))
        yield sentence[0].upper() + sentence[1:], question.format(n=n, g=g, l=loc)


def _prose_noise(source: random.Random, language: str, number: int) -> Add:
    lines = []
    for line in range(source.randint(1, 4)):
        n, g, loc = source.choice(PLACES[language])
        lines.append(source.choice(NOISE[language]).format(n=n, g=g, l=loc, i=number * 10 + line))
    return Add(source.choice(["log", "log", "tool_output"]), _padded(source, language, " ".join(lines), 1, 5))


def prose_only(seed: int) -> list[Step]:
    """Facts in plain sentences among entries about the same places. No names in code, no marks."""
    source = random.Random(f"prose {seed}")
    language = LANGUAGES[seed % 3]
    facts = _prose_facts(source, language)
    goals = {
        "en": "write a handbook of all our places",
        "pl": "napisać podręcznik o wszystkich naszych miejscach",
        "ru": "написать справочник обо всех наших местах",
    }
    steps: list[Step] = [Goal(goals[language])]
    told: list[tuple[str, str]] = []
    for number in range(STEPS):
        if source.random() < 0.3:
            fact, question = next(facts)
            key = f"fact {number}"
            kind = source.choice(PROSE_KINDS)
            steps.append(Add(kind, _padded(source, language, fact, 1, 5), "", key, fact))
            told.append((question, key))
        else:
            steps.append(_prose_noise(source, language, number))
        if number > 60 and number % 6 == 0:
            question, key = source.choice(told)
            steps.append(Ask(question, key))
    return steps


# --- code: functions, what is known of them, how it is asked -----------------------------------------------

_VERBS = "load parse merge retry flush build check split count trim sort pack send read drop wrap"
_NOUNS = (
    "header token batch socket ledger parcel invoice cursor packet window bucket session ticket record digest queue"
)
VERBS, NOUNS = _VERBS.split(), _NOUNS.split()
CODE_QUESTIONS = {
    "en": {
        "def": "What does {s} return?",
        "note": "Why is there a limit for {s}?",
        "test": "Which test covers {s} and how did it end?",
    },
    "pl": {
        "def": "Co zwraca {s}?",
        "note": "Dlaczego {s} ma ograniczenie?",
        "test": "Który test sprawdza {s} i jak się skończył?",
    },
    "ru": {
        "def": "Что возвращает {s}?",
        "note": "Почему для {s} есть ограничение?",
        "test": "Какой тест проверяет {s} и чем он закончился?",
    },
}
CODE_NOTES = {
    "en": "{s} must stay below {v} because the gateway cuts off longer ones.",
    "pl": "{s} musi zostać poniżej {v}, bo bramka ucina dłuższe.",
    "ru": "{s} должна оставаться ниже {v}, потому что шлюз обрезает более длинные.",
}


def _symbol(source: random.Random, style: int) -> str:
    verb, noun, extra = source.choice(VERBS), source.choice(NOUNS), source.choice(NOUNS)
    if style == 0:
        return f"{verb}_{noun}_{extra}"
    name = verb + noun.capitalize() + extra.capitalize()
    return name[0].upper() + name[1:] if style == 2 else name


def _definition(source: random.Random, name: str, style: int, used: list[str]) -> tuple[str, str]:
    """Code that defines ``name``, and its line with the answer."""
    value = source.randrange(1000, 99_999)
    other = source.choice(used) if used else "helper"
    body = [f"step{line} = offset + {source.randrange(100)}" for line in range(source.randint(2, 9))]
    if style == 0:
        answer = f"return base + {value}"
        lines = [
            f"def {name}(base, offset):",
            *[f"    {line}" for line in body],
            f"    {other}(offset)",
            f"    {answer}",
        ]
    elif style == 1:
        answer = f"return base + {value};"
        lines = [
            f"export function {name}(base, offset) {{",
            *[f"  const {line};" for line in body],
            f"  {other}(offset);",
            f"  {answer}",
            "}",
        ]
    else:
        answer = f"return base + {value}"
        lines = [
            f"func {name}(base int, offset int) int {{",
            *[f"\t{line.replace('=', ':=')}" for line in body],
            f"\t{other}(offset)",
            f"\t{answer}",
            "}",
        ]
    return "\n".join(lines), answer


def symbol_linked(seed: int) -> list[Step]:
    """Definitions, notes and test results about functions in three languages, among logs that mention them."""
    source = random.Random(f"symbols {seed}")
    language = LANGUAGES[seed % 3]
    goals = {"en": "make the gateway faster", "pl": "przyspieszyć bramkę", "ru": "ускорить шлюз"}
    steps: list[Step] = [Goal(goals[language])]
    used: list[str] = []
    told: list[tuple[str, str]] = []
    for number in range(STEPS):
        steps.append(_code_step(source, language, number, used, told))
        if number > 60 and number % 6 == 0:
            question, key = source.choice(told)
            steps.append(Ask(question, key))
    return steps


def _code_step(source: random.Random, language: str, number: int, used: list[str], told: list[tuple[str, str]]) -> Add:
    draw = source.random()
    questions = CODE_QUESTIONS[language]
    key = f"fact {number}"
    if draw < 0.16 or len(used) < 3:
        style = source.randrange(3)
        name = _symbol(source, style)
        if name not in used:
            code, answer = _definition(source, name, style, used)
            used.append(name)
            told.append((questions["def"].format(s=name), key))
            return Add(source.choice(["file", "edit"]), code, f"module {number}", key, answer)
    name = source.choice(used)
    if draw < 0.22:
        sentence = CODE_NOTES[language].format(s=name, v=source.randrange(100, 9999))
        told.append((questions["note"].format(s=name), key))
        return Add("note", sentence, "", key, sentence)
    if draw < 0.30:
        answer = (
            f"test_{number}_{name.lower()} {source.choice(['PASSED', 'FAILED'])} after {source.randrange(10, 9999)} ms"
        )
        lines = [f"test_{number}_{line} PASSED" for line in range(source.randint(3, 12))]
        lines.insert(source.randrange(len(lines)), answer)
        told.append((questions["test"].format(s=name), key))
        return Add("test_result", "\n".join(lines), f"tests {number}", key, answer)
    lines = []
    for line in range(source.randint(2, 9)):
        mentioned = source.choice(used) if source.random() < 0.5 else source.choice(NOUNS)
        lines.append(
            f"12:{number % 60:02}:{line:02} INFO {mentioned} took {source.randrange(1, 900)} ms "
            f"on worker {source.randrange(9)}"
        )
    return Add(source.choice(["log", "log", "tool_output"]), "\n".join(lines))


# --- goals that change -------------------------------------------------------------------------------------

TASKS = {
    "en": [
        "plan the opening hours and visitors of our places",
        "find out why lights and cables fail",
        "speed up the gateway code",
    ],
    "pl": [
        "zaplanować godziny otwarcia i gości naszych miejsc",
        "ustalić, dlaczego psują się światła i kable",
        "przyspieszyć kod bramki",
    ],
    "ru": [
        "спланировать часы работы и посетителей наших мест",
        "выяснить, почему ломаются свет и кабели",
        "ускорить код шлюза",
    ],
}
_TASK_FACTS = {0: (0, 5), 1: (4, 3), 2: ()}


def goal_switches(seed: int) -> list[Step]:
    """Three tasks by turns, about 40 steps each; after a return, what the same task said earlier is asked for."""
    source = random.Random(f"goals {seed}")
    language = LANGUAGES[seed % 3]
    pools = {
        task: source.sample(
            [(p, FACTS[language][f]) for p in PLACES[language] for f in facts], len(PLACES[language]) * len(facts)
        )
        for task, facts in _TASK_FACTS.items()
    }
    told: dict[int, list[tuple[str, str]]] = {0: [], 1: [], 2: []}
    used: list[str] = []
    steps: list[Step] = []
    number = 0
    order = [0, 1, 2]
    while number < STEPS:
        for task in source.sample(order, 3):
            earlier = list(told[task])
            steps.append(Goal(TASKS[language][task]))
            for turn in range(source.randint(32, 44)):
                number += 1
                if task == 2:
                    steps.append(_code_step(source, language, number, used, told[2]))
                elif source.random() < 0.3 and pools[task]:
                    (n, g, loc), (fact, question, values) = pools[task].pop()
                    sentence = fact.format(n=n, g=g, l=loc, v=source.choice(values))
                    sentence = sentence[0].upper() + sentence[1:]
                    steps.append(
                        Add(
                            source.choice(PROSE_KINDS),
                            _padded(source, language, sentence, 1, 5),
                            "",
                            f"fact {number}",
                            sentence,
                        )
                    )
                    told[task].append((question.format(n=n, g=g, l=loc), f"fact {number}"))
                else:
                    steps.append(_prose_noise(source, language, number))
                if earlier and turn % 5 == 2:
                    question, key = source.choice(earlier)
                    steps.append(Ask(question, key))
    return steps


GENERATORS = {"symbol-linked": symbol_linked, "prose only": prose_only, "goal switches": goal_switches}
