"""English patterns for :mod:`tui_agent.memory.statements`; matched against folded text (lower case, no diacritics)."""

# ruff: noqa: E501 - a pattern reads best in one piece
from __future__ import annotations

NUMBER = (
    r"(?:\d[\d.,]*(?:\s?(?:k|thousand|million|percent|%))?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    r"|twenty|thirty|forty|fifty|hundreds?|dozens?|thousands?|a dozen|a hundred)"
)
NUMBER_WORDS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "couple of": 2, "a couple of": 2, "three": 3, "few": 3, "a few": 3, "four": 4, "five": 5,
    "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fourteen": 14, "twenty": 20, "thirty": 30,
}  # fmt: skip
UNITS = {
    r"hours?": 1 / 24,
    r"days?": 1,
    r"weeks?": 7,
    r"fortnights?": 14,
    r"sprints?": 14,
    r"months?": 30,
    r"quarters?": 90,
    r"years?": 365,
}
WEEKDAYS = {
    "monday": 0, "tuesday": 1, "wednesday": 2, "thursday": 3, "friday": 4, "saturday": 5, "sunday": 6,
}  # fmt: skip
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip

# {n} is a number, {unit} a unit of time; both are filled in by the reader.
SPANS = (
    r"(?:for|over|during|in|within)?\s*(?:the )?(?:next|coming|following) {n} {unit}",
    r"(?:for|over|during) (?:the )?(?:next|coming|following) {unit}",
    r"(?:for|lasts?|another) {n} (?:more )?{unit}(?! (?:ago|now|already))",
    r"{n} more {unit}",
)
FIXED = (
    (r"(?:until|till|to|before) tomorrow", 1),
    (r"(?:for |only |just )?\b(?:today|tonight|this (?:morning|afternoon|evening))\b(?!'s)", 1),
    (r"\btomorrow\b", 2),
    (r"(?:until|till) (?:the )?(?:next week|end of (?:the |this )?week|weekend)", 7),
    (r"(?:all|rest of|end of)? ?(?:this|the current) week\b|rest of the week", 7),
    (r"\bnext week\b", 14),
    (r"(?:this|the current) sprint\b", 14),
    (r"(?:this|the current) month\b|(?:until|till) (?:the )?(?:next month|end of (?:the |this )?month)", 30),
    (r"(?:this|the current) quarter\b|(?:until|till) (?:the )?end of (?:the |this )?quarter", 90),
    (r"(?:until|till) (?:the )?end of (?:the |this )?day", 1),
)
UNTIL = r"(?:until|till|through|up to|before)"
AWAY = r"\b(?:vacation|holidays?|leave|away|off|out of office|ooo|sick|ill|trip|travel\w*|conference|unavailable)\b"
LASTING = r"\b(?:every|each|always|daily|weekly|monthly|(?:from|as of|starting|since) (?:today|tomorrow|this week|now)|today's)\b"

# Talk about the code at hand, not about how things are done in general.
TASK = (
    r"^(?:and |so |ok )*(?:then|next|after that|finally|afterwards)\b", r"\b(?:for|right) now\b", r"\bhere (?:that|which|and|but|it|i|we)\b|\b(?:a|an|the|this) \w+ here\b|\bhere, (?:a|an|the|it)\b",
    r"\b(?:this|that|these|the (?:first|second|third|last|other|next|failing|current|new)) (?:\w+ )?(?:function|loop|class|file|test|line|code|version|one|variable|method|page|button|case|approach|snippet|script|query|block|option|solution|way|idea|change|output|part|bug|error)s?\b",
    r"\bthe (?:function|method|output|result|loop|class|list|string|script|code|program|test|query|response|button|page) (?:must|should|needs?|has|have|returns?|prints?)\b", r"\b(?:each|every|all) (?:rows?|elements?|items?|lines?|cells?|entry|entries|keys?|values?|numbers?|strings?|characters?|tests? (?:pass|fail))\b",
    r"\bwe (?:need|have|want|should|got|must) to (?:fix|find|check|look|do|get|change|add|see|try|make)\b", r"\bit (?:still )?(?:fails|prints|returns|crashes|throws|says|hangs|doesn't)\b", r"\bkeep (?:it|this|that) (?:simple|short|as is)\b",
)  # fmt: skip
# A standing order: "Whenever I paste an error, give me the cause first."
# Telling what happens in the work at hand.
NARRATION = r"^(?:so |and |but |now |hm+,? )*i (?:just |also |still |already |then )*(?:get|got|tried|ran|want to|wanted|changed|see|saw|need|think|can't|cannot|don't (?:understand|see|get|know|think)|didn't|have (?:a|an|the|some|this) (?:list|file|problem|function|error|question|class|dict|table|bug|script)|would like to|am (?:trying|getting|looking|stuck)|'m (?:trying|getting|looking|stuck)|did|made|added|fixed|wrote|used|found|noticed|expected)\b|^my (?:code|function|script|test|program|app|query|loop|build) (?:throws|is|fails|gives|returns|crashes|prints|does|doesn't|keeps|runs|takes)\b|^it (?:says|prints|returns|fails|works|crashes|shows|gives|still|does|doesn't)\b|^you (?:forgot|missed|broke|changed|wrote|made)\b"
STANDING = r"^(?:please )?(?:when(?:ever)?|if|any ?time|each time|every time|once|before|after) (?:i|you|we|there)\b[^,]{3,60}, (?:please |then |just |always |never )*(?:give|show|tell|ask|use|answer|reply|explain|start|do not|don't|skip|list|write|put|point|name|say|add|keep|include|suggest|propose|check|run|let|first|only|quote|mention|summari[sz]e|make|stop|wait|begin|leave|assume|treat|call|be|prefer|format|warn|remind|switch|stick|avoid)\b"
INTRO = r"^(?:a )?(?:quick |short |brief )?(?:intro(?:duction)?|about me|some background|background on me|who i am)\b[^.]{0,12}:"
OFF_RECORD = (
    r"(?:don't|do not|never) (?:keep|make|take|leave|store) (?:a |any )?(?:note|record|trace|memo)s? (?:of|about) (?:this|that|it)",
    r"(?:do not|don't|dont|never|please not|no need to|rather not|shouldn't|must not) (?:\w+ ){0,2}?"
    r"(?:store|save|remember|note|record|keep|log|memori[sz]e|write|put|add|jot)\b(?: down)? (?:this|that|it|any of (?:this|it)|what i)"
    r"(?! (?:as|to the (?:disk|db|database|file)|on disk|into? (?:the )?(?:db|database|file|cache|local|session|a )))",
    r"not for (?:your|the|any) (?:notes?|memory|memories|records?|files?|log)\b",
    r"off the record", r"(?:just |strictly )?between (?:us|you and me|ourselves)\b",
    r"(?:keep|leave) (?:this|that|it|what i\b.{0,20}) (?:out of|off|away from|outside) (?:your |the |any )?(?:memory|notes?|records?|files?|log)",
    r"forget (?:that )?(?:i|what i) (?:ever |just )?(?:said|told|mentioned|wrote)", r"forget (?:this|that) (?:message|part)\b",
    r"(?:this|that|it)(?:'s| is| stays| remains) (?:just )?(?:between us|confidential|private|a secret|not to be (?:stored|saved|remembered))",
    r"(?:without|no) (?:saving|storing|remembering|recording|notes? (?:on|of)) (?:this|that|it)?", r"this (?:shouldn't|must not|should not) be (?:stored|saved|remembered|noted)",
    r"not to be (?:stored|saved|remembered|noted|recorded)", r"don't take (?:any )?notes?\b",
)  # fmt: skip
ALLOWED = r"\b(?:what you (?:can|may) (?:store|save|remember|keep|note)|you (?:can|may|should) (?:store|save|remember|keep|note|write down)|(?:but|do|instead|rather) (?:do )?(?:store|save|remember|keep|note))\b"
SMALL_TALK = (
    "ok okay k yes no yeah yep yup nope sure thanks thank you thx ty great cool nice perfect fine good super awesome "
    "amazing brilliant excellent got it please go on ahead continue proceed sounds that works worked it is was all right alright "
    "hi hello hey bye goodbye lol haha hmm hm oh ah well understood i see makes sense done next one more again morning "
    "evening afternoon night see later welcome very much so a lot for your the help me too wow sorry np no problem "
    "never mind nevermind exactly correct agreed true indeed cheers looks and now let's do this i like love it"
)
GREETING = r"(?:hi|hello|hey|good (?:morning|evening|afternoon)|thanks|thank you|ok|okay|btw|by the way|also|and|oh|so|well|please note)"
QUESTION_START = (
    r"(?:what|how|why|when|where|which|who|whose|can (?:you|i|we)|could (?:you|i|we)|would (?:you|it)|will (?:you|it)|do (?:you|i|we)"
    r"|does|did|is (?:there|it|this|that|the)|are (?:there|these|those|you)|should (?:i|we|it)|have you|has (?:it|the)|am i)\b"
)
MUSING = (
    r"\bwhat if\b", r"\b(?:suppose|supposing|imagine|assume|assuming|hypothetically|in theory|theoretically|let's (?:say|pretend|suppose))\b",
    r"\bif (?:i|we|you|they|it) (?:\w+ )?(?:were|was|had|used|preferred|wanted|lived|worked|decided|chose|switched|could|knew)\b",
    r"\bi(?:'d| would) (?:probably|maybe|perhaps|possibly)\b", r"\bwould probably\b",
    r"(?:^|[,;] )(?:maybe|perhaps|possibly)\b", r"\b(?:we|i) (?:could|might|may) (?:also |maybe |perhaps |just )?(?:\w+)",
    r"\b(?:some ?day|one day|at some point|eventually)\b", r"\bi(?:'m| am)? (?:wonder|wondering|not (?:so |quite |really )?sure|undecided|torn|tempted|considering|toying|thinking (?:about|of|whether|that maybe))\b",
    r"\bi (?:don't|do not) (?:really )?know (?:if|whether|yet)\b", r"\bjust (?:a thought|thinking|an idea|kidding|joking)\b", r"\bthinking (?:aloud|out loud)\b",
    r"\bi guess\b", r"\bif only\b", r"\b(?:would|could) be (?:nice|easier|cool|great|fun|better|interesting)\b", r"\bwouldn't it be\b",
)  # fmt: skip
SARCASM = (
    r"^(?:oh|ah|yeah|yes|sure|right|great|wow|of course|wonderful|brilliant|fantastic|perfect|fine)[, ]+(?:oh |yeah |sure |right |yes |great )*"
    r"(?:sure|right|great|let us|let's|because|why not|why don't|just what|exactly what|rewrite|another)\b",
    r"\b(?:great|brilliant|genius|wonderful|fantastic) (?:plan|idea)\b[^a-z]*$", r"\bwhat (?:could|can) (?:possibly )?go wrong\b",
    r"\bis always the answer\b", r"\bjust what (?:we|i) (?:needed|need)\b", r"\b(?:yeah|sure),? right\b",
)  # fmt: skip
FICTION = (
    r"\bin my (?:novel|story|book|game|screenplay|script for|comic|campaign|dream)\b", r"\b(?:the|my) (?:hero|heroine|protagonist|villain|main character|narrator|character)\b",
    r"\bonce upon a time\b", r"\b(?:pretend|role-?play|imagine) (?:that |you|i)\b",
)  # fmt: skip
REPORTED = (
    r"\b(?:readme|docs?|documentation|article|blog|post|e-?mail|mail|letter|comment|ticket|issue|forum|thread|log|page|site|book|manual|tutorial|wiki|report|error|output|message|notes?|file|changelog|spec)\b"
    r"[^.!?]{0,60}?\b(?:says?|said|states?|stated|reads?|ends? with|begins? with|claims?|claimed|suggests?|mentions?|tells?|told|wrote|recommends?|asks?)\b",
    r"\b(?:someone|somebody|he|she|they|people|the (?:client|customer|author|boss|manager|vendor|reviewer|contractor))(?: \w+){0,2} (?:says?|said|wrote|claims?|claimed|asked|suggests?|suggested|told me|thinks?|mentioned)\b",
    r"\baccording to\b", r"\bquot(?:e|ing)\b *:",
)  # fmt: skip
KIN = (
    r"(?:my|our|the|his|her|their) (?:\w+ )?(?:colleague|co-?worker|boss|manager|brother|sister|friend|wife|husband|partner|mother|father|mum|mom|dad"
    r"|team ?mate|team lead|tech lead|lead|cto|ceo|client|customer|neighbou?r|flat ?mate|room ?mate|cousin|uncle|aunt|son|daughter|kids?|girlfriend|boyfriend"
    r"|teacher|student|intern|predecessor|buddy|mate)s?\b"
)
PEER = r"(?:(?:my|our) )(?:\w+ )?(?:colleague|co-?worker|brother|sister|friend|wife|husband|partner|mother|father|mum|mom|dad|team ?mate|neighbou?r|flat ?mate|room ?mate|cousin|uncle|aunt|girlfriend|boyfriend|buddy)"
THIRD_VERBS = (
    r"(?:\w+ly |really |always |never |only |still |just )*(?:loves?|likes?|prefers?|hates?|uses?|wants?|thinks?|insists?|dislikes?|can't stand|adores?|swears by"
    r"|writes?|believes?|enjoys?|codes?|works?|lives?|is (?:a|an|called|named)|refuses?|does not (?:like|use)|doesn't (?:like|use))"
)
THIRD_NAME_VERBS = r"(?:(?:from|in|of) (?:the )?\w+ )?(?:really |always |never |only )*(?:loves|likes|prefers|hates|wants|thinks|dislikes|adores|enjoys|swears by|insists|says|claims|can't stand|doesn't like|refuses)"
THIRD_POSSESSIVE = r"'s (?:favou?rite|preferred|preference|editor|opinion|taste|name)"
NOT_A_PERSON = "we everyone everybody nobody i it this that there all each every you what which"

REMEMBER = (
    r"\b(?:please )?(?:remember|memori[sz]e|keep in mind|make a note|take note|note (?:down )?that|bear in mind|don't forget|do not forget|for (?:the|your) record"
    r"|for future reference|fyi|heads[- ]up|be aware|watch out|beware|just so you know|you should know|worth knowing|(?:save|store|write|jot|note) (?:this|that|it)(?: down)?)\b(?: that| this| of)?",
    r"^(?:please )?note:? (?!the\b)",
)  # fmt: skip
SAVE_COMMAND = (
    r"^(?:and |please |so |then )*(?:put|add|save|write|store|note|remember|keep|record) (?:that|this|it|both|these|those)\b.{0,60}$",
    r"^(?:please |and )*(?:fix|correct|update|change) (?:that|this|it)\b.{0,30}$",
)  # fmt: skip
ANAPHORA = (
    r"^(?:please |so |and |just |now )*(?:stop|quit|don't|do not|never do|no more)\b(?: doing)?(?: it| that| this| so)?(?: again| any ?more| please)*[.! ]*$",
    r"^(?:please )?(?:i (?:don't|do not) (?:like|want) (?:that|this|it)|not again|enough|cut it out|that's annoying|it(?:'s| is) annoying)[.! ]*$",
)  # fmt: skip
TO_RULES = (
    r"\b(?:put|add|write|save|note|append|include)\b.{0,30}\b(?:rules?|conventions|guidelines|rules\.md)\b",
    r"^(?:a |one |another )?new (?:rule|convention|guideline)\b", r"^(?:rule|convention)(?: \d+)?\s*:", r"\bmake (?:it|that|this) a rule\b",
)  # fmt: skip

NAME_CASED = (
    r"\b(?:shorten|spell|pronounce|misspell) my name\b", r"^[Nn]ame(?:'s|:| is)? [A-Z]",
    r"\b[Mm]y (?:first |last |full |family |nick|user|sur)?name(?:'s| is| was)\b", r"\b[Mm]y (?:friends|colleagues) call me\b",
    r"\b[Cc]all(?:s)? me (?!back|crazy|later|when|if|old|stupid|to)[A-Z\"'“]", r"\b(?:[Ee]veryone|[Ee]verybody|[Pp]eople|[Ff]riends) calls? me\b",
    r"\bI(?:'m| am) (?!I\b|OK\b|In\b|Not\b|A\b)[A-Z][a-z]+(?: [A-Z][a-z]+)?(?=[,.! ]|$)(?! (?:developer|engineer|programmer|speaker|user|native|citizen))",
    r"\b(?:[Tt]his is|[Ii]t's|[Ii]t is) [A-Z][a-z]+(?: [A-Z][a-z]+)? (?:speaking|here|again|from|with (?:a|an|one|two)\b)", r"^(?:(?:[Hh]i|[Hh]ello|[Hh]ey),? )?[A-Z][a-z]+ here[,.!]",
    r"\b[Tt]he name(?:'s| is) [A-Z]", r"\b[Ii]t(?:'s| is) (?:spelled|spelt|written|pronounced) [A-Z]", r"\b(?:[Ii] go by|[Yy]ou (?:can|may) call me|[Jj]ust call me|[Ii]'m called|[Ii] am called)\b",
)  # fmt: skip
NAME_WORD = r"\b(?:name|surname|called|spelled|spelt|call me|with (?:a|an|one|two|double) ['\"]?\w['\"]?(?:s\b|\b))"

USER_FACT = (
    r"\bi(?:'m| am) (?:hard of|allergic|short-?sighted|visually|partially|unable|bad at|good at|not a|no (?:expert|developer|programmer))\b|\bi can(?:'t|not)? (?:hear|see|read|speak|type)\b",
    r"\bi(?:'ve| have) been (?:a |an |working|coding|programming|using|in |with )", r"\bi(?:'m| am) (?:a|an|the|one of|in|from|based|colou?r-?blind|left-handed|right-handed|dyslexic|deaf|blind|new to|self-taught|retired|fluent|responsible|on call|vegetarian|vegan|allergic|autistic|partially|located|living|employed|freelanc\w+|\w+ by (?:trade|profession|training))\b",
    r"\bi (?:only |mostly |usually |mainly |also |currently |normally |generally |don't |do not |never |always |can't |cannot |can only )*(?:work|live|use|code|program|teach|study|speak|maintain|lead|run|own|develop|come from|start|studied|graduated|manage|sell|grew up|moved to|know|read|do most|spend|pick up|drop off|commute|travel|am allergic|hear|see|type|belong|sleep|have (?:two|three|four|five|six|a|an|no|only|\d+|adhd|dyslexia|poor|bad|limited|little|small|kids|children))\b",
    r"\bmy (?:\w+ )?(?:time ?zone|job|role|position|profession|laptop|computer|machine|pc|os|operating system|editor|ide|native (?:language|tongue)|first language|mother tongue|team|company|employer|birthday|email|e-mail|shell|terminal|keyboard|screen|monitor|background|day job|hobby|office|working hours|schedule|pronouns|phone|internet|connection|github|distro|city|country|level)\b.{0,20}?\b(?:is|are|has|have|runs?|uses?|was|ends?|starts?)\b",
)  # fmt: skip
USER_FACT_NOT = (
    r"\bhere (?:but|and|that)\b|\b(?:but|and) (?:it|this|that|the \w+) (?:still )?(?:fails|returns|prints|crashes|is|does|doesn't|gives|throws|says|works|won't)\b|\bi am working on\b.{0,40}\b(?:right now|page|button|bug|function)\b",
    r"\bi(?:'m| am) (?:trying|getting|stuck|looking|having|seeing|not sure|going to|about to|done|back|ready|sorry|curious|confused|working on (?:this|a bug|the bug)|in (?:a hurry|trouble|the middle)|a bit|a little|the one who)\b",
    r"\bi (?:have|'ve got|got|see|run|use|read|know|start) (?:a|an|this|the|some|another|no|two|it|that|into|what|how|you)?\s?(?:\w+ )?(?:question|problem|bug|error|errors|issue|idea|idea|file|list|table|function|script|class|variable|dict|array|string|warning|exception|failure|point|it|this|that|what|why|how|nothing)\b",
)  # fmt: skip
PREFERENCE = (
    r"^(?:please )?(?:give|show|tell|start|put|lead) .{3,50} first\b",
    r"^(?:just |only )?(?:one|two|a single) [\w ]{2,30} at a time\b", r"\bfrom here on(?: out)?\b",
    r"\bi(?:'d| would)? (?:really |strongly |much |always |usually |generally |also |personally |still |only )*(?:prefer|rather|favou?r)\b",
    r"\bi (?:really |do |also |just |usually |personally )*(?:like|love|enjoy|hate|dislike|loathe|despise|can't stand|cannot stand|don't (?:really )?(?:like|want|need|care for)|do not (?:like|want|need)|appreciate)\b(?! (?:to (?:add|see if|know|ask|build|make|run|create|fix|write|change)|this|that|it\b(?! (?:when|if))|your|the idea|how this|me\b|you (?:to (?:fix|add|write|run|make|create|change))))",
    r"\bi find .{3,60} (?:hard|difficult|annoying|confusing|distracting|helpful|useful|easier|tiring|unreadable|too)\b", r"\bi(?:'d| would) (?:like|love|want) (?:you to|it (?:if|when)|my|all|every)\b", r"\bi (?:want|need) (?:you to (?:always|never|be|answer|reply|write|explain|keep|ask|use)|answers?|replies|short|all|every)\b",
    r"\bi(?:'m| am) (?:a (?:big )?fan of|not a fan of|fond of|allergic to .{0,20}(?:jargon|emoji|buzzword))\b", r"\b(?:suits|works best for|is easier for|is better for|helps) me\b", r"\bmy (?:preferred|favou?rite)\b", r"\bit(?:'s| is) (?:easier|better|more convenient|nicer) for me\b",
)  # fmt: skip
# Instructions about how to answer name the answer, its form or its language.
ANSWERS = (
    r"\b(?:answers?|answering|repl(?:y|ies|ying)|responses?|respond|explanations?|(?:write|talk|speak|explain things?) to me|emojis?|emoticons?|introductions?|preambles?|jargon|buzzwords?|apologi[sz]\w*|apolog(?:y|ies)|small talk|disclaimers?"
    r"|basics|basic syntax|filler|tone|metric|imperial|(?:british|american) (?:spelling|english)|spelling|when you (?:write|talk|answer|explain|reply)"
    r"|(?:be|keep it|stay|answer|reply|explain things?)(?: more| very| really| less)? (?:brief|concise|short|formal|informal|polite|direct|blunt|honest|wordy|verbose|friendly))\b"
)
# These also occur in orders for one task ("add comments"), so they count in prohibitions and standing orders only.
ANSWERS_WEAK = r"\b(?:examples?|code (?:samples?|blocks?|examples?)|comments?|tables?|bullet points?|bullets|lists|headings|markdown|summar(?:y|ies)|summari[sz]e|links|sources|units|jokes?|types|step by step|concise|brief|formal|verbose|questions|explain|exclamation marks?)\b"
STYLE_VERBS = r"(?:please )?(?:keep|use|give|write|make|always|never|answer|reply|respond|talk|speak|explain|be|stick|leave|drop|omit|limit|address|call|prefer|format|start|end|short|brief|concise|one|only|plain|simple|skip|avoid)"
NEGATIVE_START = r"(?:please )?(?:don't|do not|never|no|avoid|skip|stop|without|less|fewer)"
LANGUAGES = r"\b(?:in|only|to) (?:plain |simple |british |american )?(?:english|german|polish|russian|french|spanish|italian|ukrainian|czech|dutch|portuguese|swedish|japanese|chinese|latin)\b"
LANGUAGE_ORDER = (
    r"\b(?:answer|reply|respond|write|talk|speak|explain|switch|chat|communicate|address|stick|keep)(?:ing|s)?(?: to)?(?: me| back| with me| things| everything| it| us)*(?: only| always| exclusively)* "
    + LANGUAGES
    + r"|^(?:please |only |always )*"
    + LANGUAGES
    + r"[, ]*(?:please|only|from now on|always)*[.! ]*$"
)
IMPERFECTIVE = r"(?!)"
PERMANENCE = (
    r"\b(?:from now on|from here on|from today|in (?:the )?future|going forward|by default|henceforth|every time|each time|unless i (?:ask|say|tell)|as a rule|at all times|until i say otherwise|until further notice|whenever (?:i|you))\b",
    r"(?:^|[,;:] |\b(?:please|also|and|but) )(?:always|never|don't ever|do not ever)\b",
)  # fmt: skip
IMPERATIVE_FORM = r"(?:please|let's|let us|go ahead and|just) \w+"
TIME_START = r"(?:until|till|for|this|today|tonight|tomorrow|over|during|in|next|all)\b"
CODE_OBJECTS = r"\b(?:push|commits?|merge|deploy\w*|branch(?:es)?|main|master|production|pull requests?|prs?|migrations?|endpoints?|functions?|classes|modules?|tables? names?|variables?|env(?:ironment)? variables?|tests?|files? names?|imports?|docstrings?|database|schema|repo(?:sitory)?|codebase|secrets|releases?|log(?:s|ging)|dependencies|error messages?|timestamps?)\b"
WE = r"\b(?:we|we're|we've|we'll|our team)\b"
FIRST_SUBJECT = r"\b(?:i|i'm|i've|i'd|i'll|my|mine|myself)\b"
IMPERATIVE = (
    "run rename show fix add create write explain make list find refactor change remove delete open give tell help check update move generate convert implement test build deploy "
    "install read look print format translate summarize summarise compare review debug commit push merge search replace try use keep answer reply respond stick don't do please avoid skip "
    "call address put leave stop start ask plan let always never prefer get set turn switch drop restart revert undo clean sort draw load save export import send download upload extract "
    "drop rewrite repeat continue describe define calculate count pick choose select close enable disable wrap split join document comment"
)
LEARNED = (
    r"\bstop (?:\w+ing|with the)\b", r"\b(?:quit|cease|enough with|enough of|no more) (?:\w+ing|the|your)\b", r"\byou (?:keep|kept|always|constantly|still|again|never|once again|forgot again)\b", r"^(?:again )?you .{3,80}\bagain\b",
    r"^again you\b", r"\b(?:don't|do not|never) do (?:that|it|this|so)(?: \w+){0,3} (?:again|any ?more)\b", r"\bi(?:'ve| have)? (?:already |just )?(?:told|asked|said to) you\b", r"\bhow many times\b", r"\bnext time\b.{0,40}\b(?:ask|check|don't|do not|use|first)\b",
)  # fmt: skip
CORRECTION_START = r"(?:no|nope|nah|actually|correction|wrong|sorry|not quite|oops|fix|not)\b[,:. -]"
CORRECTION = (
    r"\bthat(?:'s| is| was) (?:wrong|not right|incorrect|not true|false|a mistake|not correct|outdated)\b", r"^(?:correction|(?:(?:no|nope|nah|sorry|oops)[, ]+)?(?:that's )?wrong)\b",
    r"\byou (?:got|have|had|remembered|noted|saved|wrote|spelled|spelt) (?:that|it|this|my \w+) (?:wrong|down wrong|incorrectly)\b", r"\byou(?:'re| are) (?:wrong|mistaken|confusing|mixing)\b", r"\byou (?:wrote|put|typed|noted|called me|saved) [^,]{2,40}, (?:but|it's|and i)\b", r"\byou (?:mixed|confused|misremember\w*|misunderst\w*|misspel\w*)\b",
    r"\bi (?:said|meant)\b(?! (?:that|to))", r"\bnot [\w.-]{2,30}[,;] (?:it's|it is|we use)\b",
)  # fmt: skip
CONTRAST = (r", (?:and )?not\b", r"\bnot [^,.]{2,30}, but\b", r"\bnot [\w.-]+[,;] ", r"\brather than\b|\binstead of\b")
CORRECTION_NOT = r"\bnot what i (?:meant|asked|wanted|said)\b|\b(?:doesn't|does not|didn't|did not|don't|won't|still|not) (?:work|help|compile|run|build|start|fix|change anything)\b|\bthanks?\b|^(?:no|nope)[, ]+(?:i (?:don't|didn't|mean)|wait|never ?mind|it's (?:fine|ok)|that's (?:all|it|fine|ok))"
PROJECT_NOUNS = r"(?:project|app|application|tool|service|library|website|web ?site|site|bot|platform|system|api|cli|plugin|game|package|product|framework|engine|dashboard|portal|program|module|extension|shop|store|scraper|client|server|database|repo|repository)"
PROJECT_CASED = (
    rf"^(?:[Tt]he )?(?:[Pp]roject )?[\"“«']?(?P<name1>[A-Z][\w-]+)[\"”»']? is (?:our|my|the|a|an) (?:[\w-]+ ){{0,4}}?{PROJECT_NOUNS}\b",
    rf"^(?:[Oo]ur|[Mm]y) (?:[\w-]+ ){{0,2}}?{PROJECT_NOUNS}[,:]? [\"“«']?(?P<name5>[A-Z][\w-]+(?: [A-Z][\w-]+)?)[\"”»']?,? (?:is|does|helps|lets|collects|manages|tracks)\b",
    r"\b(?:[Tt]he |[Oo]ur |[Mm]y )?[Pp]roject: [\"“«']?(?P<name4>[A-Z][\w-]+)[\"”»']?(?=[,:;—–]| -| is)",
    r"\b(?:[Tt]he|[Tt]his|[Oo]ur|[Mm]y) (?:\w+ )?(?:project|app|repo|repository|tool|service|product|library|bot|game|site)(?:'s name)? is (?:called|named|code-?named )?\s?[\"“«']?(?P<name2>[A-Z][\w-]+)",
    r"\b(?:[Ww]e(?:'re| are)|I(?:'m| am)) (?:building|making|developing|writing|working on|creating|maintaining) (?:(?:a|an|our|the) )?(?:[\w-]+ ){0,3}?[\"“«']?(?P<name3>[A-Z][\w-]+)[\"”»']?, (?:a|an|our|the)\b",
)  # fmt: skip
PROJECT = (
    rf"\b(?:we(?:'re| are)|i(?:'m| am)) (?:building|making|developing|creating|maintaining) (?:a|an) (?:[\w-]+ ){{0,4}}?{PROJECT_NOUNS}\b.{{8,}}", r"\b(?:this|our|the) (?:project|repo|repository|codebase|app) (?:is (?:a|an|about|for)|does|provides|implements)\b",
)  # fmt: skip
DECISION = (
    r"\b(?:and i|we both|we all) (?:have )?(?:agreed|decided|settled|chose)\b", r"^(?:settled|agreed|decided|resolved)\b[^:.]{0,40}:",
    r"\b(?:team|everyone|everybody|we all|board|majority) (?:has |have )?(?:voted|agreed|decided|chosen|chose|settled)\b", r"\bit's clear: we\b|\bwe(?:'re| are) (?:going|back to|done with|all in on|now on)\b(?! to (?:have|need|see))", r"^\w[\w.+#-]* (?:is|are) (?:out|gone|in|dropped)[,;.]", r"\b(?:replaces|takes the place of|will be (?:written |built )?in|wins|won)\b.{0,40}[,;.].{3,}\b(?:will|so)\b",
    r"\bwe(?:'ve| have)? (?:finally |now |just |all |also )*(?:decided|agreed|chose|chosen|settled|thrown out|threw out|removed|retired|scrapped|deprecated|kicked out|got rid of|rely on|committed|opted|picked|voted|resolved|went with|dropped|switched|moved|migrated|replaced|adopted|abandoned|gave up on|stopped using|no longer (?:use|support)|rejected|ditched|killed|ruled out|committed to)\b",
    r"\bi(?:'ve| have)? (?:finally |now |just )*(?:decided|chose|settled on|picked|opted)\b(?! to (?:ask|try))", r"\bwe(?:'re| are)(?: now| officially| finally)? (?:switching|moving|migrating|dropping|going with|going to (?:use|keep|stay|move|drop|switch|support|store|write|build)|staying|sticking|keeping|adopting|replacing|not going to|phasing out|standardi[sz]ing|abandoning)\b",
    r"\bwe(?:'ll| will| won't) (?:not |always |only |never )*(?:use|go|keep|stay|move|switch|drop|build|support|write|store|have|stick|leave|ship|adopt|be using|replace|migrate)\b",
    r"^(?:final |our |the )?(?:decision|call|verdict|decided|agreed|settled|resolution|conclusion)(?: is)?(?: final)?\s*[:,-]", r"\b(?:it(?:'s| is)|that(?:'s| is)) (?:settled|decided|final|agreed)\b", r"\bthe decision is\b",
    r"\blet(?:'s| us) (?:please |just |finally |not )*(?:drop|go with|use|keep|stick|stay|move to|switch|skip|leave|avoid|ditch|adopt|not|store|call it|name it|stop using|standardi[sz]e|remove support|settle)\b(?! (?:this|that|it) (?:for now|later))",
    r"\b(?:is|are) (?:off the table|out of the question|out of scope|not an option)\b", r"\bleave .{2,40} out\b", r"\binstead of\b.{2,40}\bwe\b",
)  # fmt: skip
CONVENTION = (
    r"^(?:nobody|no one|everyone|everybody|only \w+|anyone) (?:\w+s|may|can|must|should)\b(?! (?:that|this|it)\b)", r"^(?!the |this |that |it |i |you |he |she )[\w' -]{3,40} (?:must|shall|may only) (?:not |never |always |only )?(?:be|have|use|go|start|end|contain|follow|include|come|carry|live|pass|stay)\b", r"^our [\w' -]{3,40} (?:are|is|use|follow|have|live|go|start|end)s?\b", r"\band nowhere else\b|\bthe other way round is\b|\bis (?:forbidden|banned|mandatory|obligatory|not allowed|required) (?:here|in|for|on|by)\b",
    r"\bin (?:this|our|the) (?:repo|repository|project|codebase|team|company|code base|code|org|module|monorepo)\b", r"(?:,| |^)(?:around )?here\b(?=[.,!]|$)",
    r"\b(?:all|every|each|any|no) (?:[\w-]+ ){1,4}?(?:must|should|needs?|has to|have to|are|is|goes|go|ends?|starts?|begins?|gets?|follows?|uses?|lives?|has|have|contains?|comes?|carr(?:y|ies)|requires?|may|can|belongs?)\b",
    r"\b(?:must|should|shall|needs? to|has to|have to|may) (?:always |never |not |only )+\w+", r"\b(?:always|never) (?:be |are |is |gets? |go(?:es)? |end|start|begin|use|written|stored|named|store|commit|push|merge|deploy|write)", r"\b(?:are|is|get|gets) (?:always|never|only) \w+",
    r"\bwe (?:always|never|only|usually|only ever|generally|don't|do not|normally) \w+", r"\bwe (?:name|write|keep|store|put|use|commit|deploy|test|document|tag|prefix|call|format|indent|version|follow|run|log|review|squash|rebase|release|pin|lint|sign|merge|target|host|ship|track|cache)\b",
    r"\b(?:are|is) (?:stored|kept|written|named|formatted|prefixed|suffixed|versioned|signed|documented|ordered|grouped|tagged|generated|reviewed|merged|deployed|released|logged|squashed) (?:in|as|with|by|like|after|under|on|from|to|only|at|through|via|before)\b",
    r"\b(?:looks? like|ends? (?:in|with)|starts? with|begins? with|follows?|conforms? to|goes? (?:in|into|under|through)|lives? (?:in|under))\b", r"^no (?:\w+ ){1,4}(?:in|without|on|allowed)\b", r"\bour (?:convention|rule|style|standard|policy)\b", r"\bnever (?:push|commit|merge|use|deploy|edit|touch)\b",
)  # fmt: skip
PROBLEM = r"\b(?:chokes?|breaks?|fails?|crash(?:es)?|hangs?|dies|times? out|loses|drops|corrupts?|falls over|blows up|stalls|leaks?|freezes?|mangles?|garbles?|can't handle|cannot handle|doesn't (?:like|handle|work)|only works?|won't (?:work|start|build)|needs|rejects?|ignores|truncates)\b"
PROBLEM_WHEN = r"\b(?:if|when|whenever|on|with|for|because|as soon as|unless|every time|after|under|above|over)\b"
WORKAROUND = r"\b(?:so (?:we|you|i|always)|we (?:have to|must|need to|should|strip|convert|replace|restart|always|first|use|work)|workaround|first|instead|have to|need to|must|restart|convert|replace|strip|remove|delete|clear|re-?run|fix(?:es)? (?:is|it)|the trick|helps?|solves it|cures it|works around|set|use|disable|escape|always|beforehand|up front|we \w+ (?:them|it)|in chunks|splits?)\b"

STATE_NOT = r"\b(?:licen[cs]es?|at (?:least|most)|minimum|maximum|no more than|environments?|branches|stages|kinds|types|modes|levels|layers|rules|roles|steps|phases|approvals|reviewers?|must|should|every|each|always|never|needs?)\b"
STATE_COUNT = (
    r"\bthere (?:were|was|have been|has been) (?:\w+ )?{n} ",
    r"\bthere(?:'s| are| is| were|'re) (?:now |currently |only |still |about |around |over |already |exactly )*{n} ",
    r"\b(?:we|they|the (?:team|company|department|client)) (?:now |currently |still |only |already )*(?:have|has|had|got|employs?|counts?) (?:now |currently |only |about |around |over |exactly )*{n} ",
    r"\b(?:team|company|project|repo|repository|database|db|table|queue|backlog|board|tracker|warehouse|shop|app|service|server|cluster|inbox|list|bucket|index|store|department|office|site|page) (?:now |currently |still |already )*(?:has|have|contains?|holds?|counts?|is at|are at|shows?|lists?|got) (?:now |currently |about |around |over |exactly |only )*{n}\b",
    r"\b{n} (?:\w+ )?(?:open|unread|pending|failing|failed|remaining|unresolved|active|outstanding|queued)\b", r"\b{n} (?:[\w-]+ )?(?:tickets|tasks|bugs|issues|pull requests|prs|messages|rows|users|customers|orders|jobs|errors|warnings|tests|cards|stories|requests) (?:are |is |were |have |still |remain|left|in |fail|passed|open|waiting)",
)  # fmt: skip
STATE_STATUS = (
    r"\b(?:ticket|issue|build|pr|pull request|task|bug|story|job|run|card|order|incident|merge request|mr)s? (?:no\.? |number |#)?(?:[a-z]+-)?#?\d+\b[^.!?]{0,40}\b(?:is|are|was|has|have|still|failed|passed|waits?|got|needs)\b", r"\b(?:dropped|rose|fell|went up|went down|jumped|grew|climbed|increased|decreased|sank) (?:to|by|from) (?:about |around )?\d", r"\b(?:yesterday|last (?:night|week|month|friday)|this morning) (?:the )?\w+ (?:failed|crashed|broke|went down)\b", r"\btests? pass(?:es)?\b", r"\bstill in (?:review|progress|testing|qa)\b",
    r"\b(?:project|release|deployment|deploy|build|pipeline|ci|server|staging|production|prod|site|website|service|api|database|db|tests?|test suite|sprint|migration|ticket|job|launch|rollout|cluster|queue|load|memory usage|disk|cpu|branch|pr|pull request|milestone|deadline|network|vpn|printer|backup|invoice|order|delivery|website|shop|app|node|container|server load|coverage)\b"
    r"[^.!?]{0,40}?(?:\b(?:is|are|was|were|has been|have been|got|will be|looks|seems|stays)|'s) (?:now |currently |still |again |already |almost |nearly |about |\w+ly |\w+ (?:days?|weeks?|months?|hours?) )*(?:delayed|late|behind|ahead|red|green|yellow|down|up|broken|failing|failed|passing|stuck|blocked|on hold|on track|done|finished|over|running|slow|offline|online|full|at \d|postponed|overdue|merged|closed|open|live|cancelled|canceled|unavailable|unreachable|flaky|pending|in progress|back up)\b",
    r"^(?:the |our )?[\w .'\"-]{2,40} (?:is|are|has been|was) (?:currently |still |again |now )*(?:down|red|failing|broken|delayed|offline|stuck|behind schedule|overdue|postponed|slipping|late)\b(?! (?:by design|on purpose))",
    r"\b(?:release|launch|deadline|demo|go-live|rollout|cut-?over)\b[^.!?]{0,30}? (?:is|are) (?:on|next|this|tomorrow|today|in) (?:(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|week|month|january|february|march|april|may|june|july|august|september|october|november|december|\d)", r"\b(?:behind|ahead of) schedule\b", r"\b(?:slipped|slips|was pushed back|got delayed|runs late) (?:by|to)\b", r"\b(?:ends|starts|is due|ships|launches|goes live|closes|opens) (?:on|in|at|next|this|tomorrow|today|by) ", r"\b(?:right now|at the moment|at present|as of now)\b", r"\b(?:is|are|stands|sits|runs) (?:currently |now )?at \d[\d.,]* ?(?:%|percent|ms|gb|mb|degrees|requests)",
)  # fmt: skip
# Parts of a project, and whatever else a tool counts; with an adjective or two between number and noun.
STATE_PARTS = r"(?:sub)?(?:modules?|packages?|(?:micro)?services?|apps?|applications?|components?|librar(?:y|ies)|layers?|repositor(?:y|ies)|repos|folders?|director(?:y|ies)|servers?|databases?|plugins?|parts?)\b"
STATE_AMOUNT = (
    r"\b(?:has|contains?|consists? of|comprises?|includes?|(?:is|are) (?:made up of|split into|divided into|composed of)|counts?|holds?) (?:now |currently |about |around |over |exactly |only |a total of |some )*{n} (?:[\w-]+ ){0,2}?(?:" + STATE_PARTS + r"|endpoints?\b|tests?\b|lines?\b|tables?\b|files?\b|classes\b|functions?\b|methods?\b|commits?\b|contributors?\b|stars?\b|forks?\b|users?\b|rows?\b|columns?\b|dependenc(?:y|ies)\b|screens?\b|views?\b|jobs?\b|containers?\b)",
    r"\b(?:is|are) (?:about |around |over |some |only )?{n} lines? (?:long|of code)\b",
    r"\b(?:team|we|company|department|office) (?:is|are|'re) (?:now |currently |only |about |around )*{n} (?:\w+ )?(?:people|persons|developers|engineers|members|strong)\b",
    r"\bcoverage (?:is|was|of|at|stands at|sits at)(?: now| currently| about| around| at)* \d",
    r"\b(?:current|latest|newest|most recent) (?:version|release|commit|tag|build)(?: (?:of|on|in) (?:the |our |this )?[\w-]+)? is (?:v?\d|[0-9a-f]{7})",
)  # fmt: skip
STATE_NOW = r"\b(?:now|currently|still|again|today|tonight|yesterday|since (?:this |last |yesterday|monday|tuesday|wednesday|thursday|friday|saturday|sunday|morning|noon)|for (?:hours|days|weeks)|at the moment|at present)\b"
OURS = r"(?:our|the team's|the project's)\b"
STATE_PLACE = r"(?i:\b(?:is|are|stands?|lives?|runs?|sits?|(?:is|are) (?:hosted|located|kept|based)) (?:in|at|on|under|behind|near)) (?i:the |a )?(?:(?!(?i:mon|tues|wednes|thurs|fri|satur|sun)day)[A-Z][\w.-]+|(?:[\w'-]+ ){0,3}?(?i:office|basement|floor|room|cloud|data ?cent(?:er|re)|rack|folder|directory|port|cluster|region|building|warehouse|cellar|attic)\b)"
# Said for good, though the words are those of a status: taken out before a status is looked for.
STATE_LASTING = (
    r"(?i:\bopen[- ]source\b)",
    r"(?i:\b(?:open|closed) to (?!\d)\w+)",
    r"(?i:\b(?:live|up|online|running|available) (?:at|under|on) (?:https?://)?[\w-]+\.[\w-]+\S*)",
    r"(?i:\b(?:ends?|starts?|ships?|launches|goes live|closes|opens|is open|are open|is closed|are closed|is due|are due) (?:on |every |only )+(?:\w+ and )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekends?|weekdays|holidays)\b)(?<=s)",
)  # fmt: skip
FIRST_PERSON = r"\b(?:out of office|ooo|on (?:vacation|holiday|leave|sick leave|parental leave|a trip|the road)|i|i'm|i've|i'd|my|me|mine|myself)\b"
VERSIONED = r"\b(?:we|it|this|project|repo|service|backend|frontend|app|everything)(?:'re| are| is|'s)? (?:\w+ )?(?:use|uses|run|runs|on|running|using|built on|target|targets|pin|pins|require|requires|need|needs|upgraded to|moved to)\b(?: on)?"

_MANAGERS = r"(?:npm|pnpm|yarn|bun|pip|poetry|uv|conda|pipenv|pip-tools)"
# Keys that hold one statement at a time; only where the words leave no doubt, since the same subject supersedes.
SUBJECTS = {
    "package manager": rf"\b(?:i|we)(?:'ve| have|'d)? (?:now |always |only |strongly |really |much )*(?:prefer|use|chose|(?:switched|moved|switching|moving) to|picked|go with|went with) (?:to use )?{_MANAGERS}\b(?!.* (?:and|for) )",
    "reply language": r"\b(?:answer|reply|respond|write|talk|speak)\b.{0,30}" + LANGUAGES,
    "answer length": r"\b(?:short|brief|concise|long|under \w+|\w+ (?:lines|sentences))\b.*\b(?:answers?|repl\w+|respon\w+|explan\w+)\b|\b(?:answers?|repl\w+|respon\w+)\b.*\b(?:short|brief|concise|long|under|lines|sentences)\b",
    "emoji": r"\bemojis?\b",
    "time zone": r"\bmy time ?zone\b|\btime zone, |\bi(?:'m| am) in .* time ?zone\b",
    "editor": r"\bmy (?:editor|ide) is\b",
    "residence": r"\bi live in\b",
    "occupation": r"\bi work as\b|\bby (?:trade|profession)\b|\bmy job is\b",
}
SAVE_CLAIM = (
    r"\bi(?:'ve| have|'ll| will)?(?: now| just| also| already)* (?:saved|stored|noted|remembered|recorded|added|written|wrote|updated|memori[sz]ed|made a note|taken note|put|kept|logged|remember|note|save|store|keep (?:that|this|it) in mind)\b(?!.{0,20}\b(?:function|file called|import|test|method|class|variable|bug)\b)",
    r"^(?:ok(?:ay)?|sure|got it|great|thanks?|understood|done|perfect|alright)?[,.! ]*(?:noted|saved|stored|remembered|recorded|duly noted|memory updated|added to (?:your |my |the )?(?:memory|notes|preferences|profile|rules))\b",
    r"\b(?:has|have) been (?:saved|stored|noted|recorded|added to (?:your|my|the) (?:memory|notes|preferences|profile|rules))\b", r"\b(?:saved|stored|added|recorded|written|noted) (?:it |this |that |your \w+ )?(?:to|in|into) (?:your |my |the |long-term )*(?:memory|notes?|preferences|profile|rules|knowledge|user\.md|agents\.md|rules\.md)\b",
    r"\bi(?:'ll| will) (?:remember|keep (?:that|this|it) in mind|make (?:a )?note|bear (?:that|this) in mind|not forget)\b", r"\b(?:your|the) (?:preferences?|name|notes?|memory|profile) (?:has been|have been|is now|are now|was|were) (?:saved|updated|noted|stored|recorded)\b",
)  # fmt: skip
SAVE_DENIAL = r"\b(?:not|n't|cannot|can't|couldn't|unable|nothing|never|failed|unless|if you|would you like|do you want|should i|shall i|want me to|could)\b"
