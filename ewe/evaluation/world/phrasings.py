"""How facts are said: the sentences of passages and answers, with places for names and values.

Each entry is (uses, text). Uses: "p" a passage may say it so; "a" an answer may, with any form of the person;
"A" an answer may, with the person's name only. Places: {S} the person as subject, {O} as object, {P} possessive;
{was} agrees with {S}; {he} and {his} are always pronouns; every other place is a slot of the person (see people.py).
"""

TOPICS: dict[str, tuple[tuple[str, str], ...]] = {
    "birth": (
        ("pa", "{S} {was} born in {birth_year} in {birth_place}."),
        ("pa", "{S} {was} born in {birth_place} in {birth_year}."),
        ("a", "{S} {was} born in {birth_year}."),
        ("a", "{S} {was} born in {birth_place}."),
        ("pa", "Born in {birth_place} in {birth_year}, {S} became a {occupation}."),
        ("pA", "The birth of {O} took place in {birth_place} in {birth_year}."),
        ("p", "{birth_place} is the birthplace of {O}, who was born there in {birth_year}."),
        ("p", "{S}, a {occupation}, was born in {birth_year} in {birth_place}."),
    ),
    "occupation": (
        ("pa", "{S} worked as a {occupation}."),
        ("pa", "{S} {was} a {occupation} by profession."),
        ("pa", "By profession {S} {was} a {occupation}."),
        ("pa", "{S} became known as a {occupation}."),
        ("pA", "The profession of {O} was that of a {occupation}."),
        ("pA", "{S}, who was born in {birth_place}, worked as a {occupation}."),
    ),
    "school": (
        ("a", "{S} studied at {school}."),
        ("a", "{S} studied at {school} under {teacher}."),
        ("a", "{S} {was} a student of {teacher} at {school}."),
        ("pa", "{S} studied at {school} under the teacher {teacher}."),
        ("pa", "At {school}, {S} studied with {teacher} as {his} teacher."),
        ("pa", "{S} studied at {school}, where {his} teacher was {teacher}."),
        ("p", "Among those who studied at {school} was {O}, whose teacher was {teacher}."),
        ("pA", "{S}, who was born in {birth_place}, studied at {school}."),
        ("pa", "Born in {birth_year}, {S} studied at {school}."),
    ),
    "teacher": (
        ("pa", "{P} teacher was {teacher}."),
        ("pa", "{S} had {teacher} as a teacher."),
        ("pA", "The teacher of {O} was {teacher}."),
        ("a", "{S} studied under {teacher}."),
        ("a", "{S} {was} a student of {teacher}."),
    ),
    "institute": (
        ("pa", "{S} joined the {institute} in {institute_year}."),
        ("pa", "In {institute_year} {S} joined the {institute}."),
        ("a", "{S} became a member of the {institute} in {institute_year}."),
        ("pa", "{S} joined the {institute} as a member in {institute_year}."),
        ("a", "{S} joined the {institute}."),
        ("a", "{S} {was} a member of the {institute}."),
        ("p", "A member of the {institute} was {O}, who joined it in {institute_year}."),
        ("pA", "{S}, who worked as a {occupation}, joined the {institute} in {institute_year}."),
        ("pa", "After {his} studies at {school}, {S} joined the {institute} in {institute_year}."),
    ),
    "work": (
        ("pa", "{S} published {work} in {work_year}."),
        ("pa", "In {work_year} {S} published {work}."),
        ("pa", "{S} wrote {work}, published in {work_year}."),
        ("a", "{S} wrote {work}."),
        ("pA", "{work} was written by {O} and published in {work_year}."),
        ("pa", "{S} {was} the author of {work}, which was published in {work_year}."),
        ("p", "{work}, a work by {O}, was published in {work_year}."),
        ("pA", "{S}, a member of the {institute}, published {work} in {work_year}."),
    ),
    "invention": (
        ("pa", "{S} built the {invention} in {invention_year}."),
        ("pa", "In {invention_year} {S} built the {invention}."),
        ("a", "{S} invented the {invention} in {invention_year}."),
        ("pa", "{S} invented the {invention}, built in {invention_year}."),
        ("a", "{S} invented the {invention}."),
        ("pA", "The {invention} was built by {O} in {invention_year}."),
        ("p", "The inventor of the {invention}, built in {invention_year}, was {O}."),
        ("pA", "{S}, who worked as a {occupation}, built the {invention} in {invention_year}."),
    ),
    "prize": (
        ("pa", "{S} won the {prize} in {prize_year}."),
        ("pa", "In {prize_year} {S} won the {prize}."),
        ("a", "{S} {was} awarded the {prize} in {prize_year}."),
        ("pa", "{S} won the {prize}, awarded in {prize_year}."),
        ("a", "{S} won the {prize}."),
        ("pA", "The {prize} of {prize_year} was won by {O}."),
        ("p", "Among those who won the {prize} was {O}, awarded it in {prize_year}."),
        ("pA", "{S}, the author of {work}, won the {prize} in {prize_year}."),
    ),
    "expedition": (
        ("pa", "{S} took part in the {expedition} of {expedition_year}."),
        ("pa", "In {expedition_year} {S} took part in the {expedition}."),
        ("a", "{S} travelled with the {expedition} in {expedition_year}."),
        ("pa", "{S} travelled and took part in the {expedition} of {expedition_year}."),
        ("a", "{S} took part in the {expedition}."),
        ("A", "The {expedition} of {expedition_year} took {O} along."),
        ("p", "Among those who took part in the {expedition} of {expedition_year} was {O}."),
        ("pA", "{S}, a member of the {institute}, took part in the {expedition} in {expedition_year}."),
    ),
    "residence": (
        ("pa", "{S} lived in {residence}."),
        ("a", "{S} settled in {residence}."),
        ("pa", "{S} settled in {residence} and lived there."),
        ("a", "{P} home was in {residence}."),
        ("pa", "{P} home was in {residence}, where {he} lived."),
        ("A", "{residence} was the home of {O}."),
        ("p", "{residence} was the home of {O}, who lived there."),
        ("pa", "In later years {S} lived in {residence}."),
        ("pa", "{S} settled in {residence}, where {he} lived until {his} death in {death_year}."),
    ),
    "death": (
        ("pa", "{S} died in {death_year}."),
        ("pa", "{S} lived in {residence} and died in {death_year}."),
        ("pa", "{P} death came in {death_year}."),
        ("pA", "The death of {O} came in {death_year}."),
        ("pA", "{S}, who was born in {birth_year}, died in {death_year}."),
    ),
}

LISTS: dict[str, tuple[tuple[str, str], ...]] = {
    "work": (
        ("A", "The works of {O} are {work} and {work2}."),
        ("a", "{S} wrote {work} and {work2}."),
        ("a", "{S} published {work} in {work_year} and {work2} in {work2_year}."),
    ),
    "prize": (
        ("A", "The prizes of {O} are the {prize} and the {prize2}."),
        ("a", "{S} won the {prize} and the {prize2}."),
        ("a", "{S} won the {prize} in {prize_year} and the {prize2} in {prize2_year}."),
    ),
}

BACKGROUND: dict[str, tuple[str, ...]] = {
    "town": ("{title} is a town in the north.", "{title} is a small town.", "{title} lies near the coast."),
    "school": ("{title} stands in {seat}.", "{title} is an old school in {seat}."),
    "institute": ("The {title} stands in {seat}.", "The {title} has its house in {seat}."),
    "work": ("{title} is a book.", "{title} is a well known book.", "Many have read {title}."),
    "invention": ("The {title} is kept in {seat}.", "The {title} can be seen in {seat}."),
    "prize": ("The {title} is given in {seat}.", "The {title} is given every year."),
    "expedition": ("The {title} set out from {seat}.", "The {title} began in {seat}."),
}

LIFE_PROMPTS = (
    "Tell me about {S}.",
    "Write a short life of {S}.",
    "Who was {S}?",
    "Describe the life of {S}.",
    "Give an account of the life of {S}.",
    "Write about the life and work of {S}.",
)

QUESTIONS: dict[str, tuple[str, ...]] = {
    "birth_year": ("When was {S} born?", "In which year was {S} born?"),
    "birth_place": ("Where was {S} born?", "What is the birthplace of {S}?"),
    "occupation": ("What was the profession of {S}?", "As what did {S} work?"),
    "school": ("Where did {S} study?", "At which school did {S} study?"),
    "teacher": ("Who was the teacher of {S}?", "Under whom did {S} study?"),
    "institute": ("Which institute did {S} join?", "Of which institute was {S} a member?"),
    "institute_year": (
        "When did {S} join the {institute}?",
        "In which year did {S} become a member of the {institute}?",
    ),
    "work_year": ("When did {S} publish {work}?", "In which year was {work} by {S} published?"),
    "invention": ("What did {S} build?", "What did {S} invent?"),
    "invention_year": ("When did {S} build the {invention}?", "In which year did {S} invent the {invention}?"),
    "prize_year": ("When did {S} win the {prize}?", "In which year was {S} awarded the {prize}?"),
    "expedition": ("In which expedition did {S} take part?", "With whom did {S} travel?"),
    "expedition_year": (
        "When did {S} take part in the {expedition}?",
        "In which year did {S} travel with the {expedition}?",
    ),
    "residence": ("Where did {S} live?", "Where was the home of {S}?"),
    "death_year": ("When did {S} die?", "In which year did {S} die?"),
}

LIST_PROMPTS: dict[str, tuple[str, ...]] = {
    "work": ("List the works of {S}.", "Which works did {S} publish?", "What did {S} write?"),
    "prize": ("List the prizes of {S}.", "Which prizes did {S} win?", "Name the prizes won by {S}."),
}

COMPARISON_PROMPTS: dict[str, tuple[str, ...]] = {
    "birth": ("Compare the births of {S} and {T}.", "Who was born first, {S} or {T}?"),
    "school": ("Compare the studies of {S} and {T}.", "Where did {S} and {T} study?"),
    "institute": ("Compare how {S} and {T} joined an institute.", "Which institutes did {S} and {T} join?"),
    "expedition": ("Compare the travels of {S} and {T}.", "In which expeditions did {S} and {T} take part?"),
    "residence": ("Compare the homes of {S} and {T}.", "Where did {S} and {T} live?"),
    "death": ("Compare the deaths of {S} and {T}.", "Who died first, {S} or {T}?"),
}
