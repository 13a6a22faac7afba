"""Plain statements of one attribute with another value: of some there is one at a time, of others there are many.

What people write by hand tells a change in many words; "I live in Berlin" and later "I live in Paris" it leaves out.
"""

from __future__ import annotations

from random import Random

from change_training.statements import AGAIN, APART, CHANGED, Pair

_VALUES = {
    "city": [
        "Berlin",
        "Paris",
        "Oslo",
        "Porto",
        "Bergen",
        "Rome",
        "Leeds",
        "Ghent",
        "Lima",
        "Accra",
        "Kyoto",
        "Austin",
        "Delhi",
        "Turin",
        "Cork",
        "Ulm",
        "Riga",
    ],
    "firm": [
        "Siemens",
        "Ikea",
        "Bosch",
        "a bakery",
        "the town library",
        "a law firm",
        "Nordwind",
        "the hospital",
        "a bank",
        "Tesco",
    ],
    "job": [
        "nurse",
        "baker",
        "teacher",
        "driver",
        "plumber",
        "programmer",
        "waiter",
        "gardener",
        "translator",
        "carpenter",
    ],
    "time": ["seven", "half past eight", "nine", "ten", "noon", "two", "four", "a quarter past six", "8:30", "17:00"],
    "day": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    "date": ["3 May", "10 May", "1 June", "12 July", "30 August", "the 5th", "the 19th", "next Friday", "14 October"],
    "number": ["two", "three", "four", "five", "six", "eight", "twelve", "15", "20", "35", "84", "92", "120"],
    "name": [
        "Momo",
        "Luna",
        "Rex",
        "Bello",
        "Finn",
        "Oscar",
        "Ada",
        "Greta",
        "Ravi",
        "Noor",
        "Sam",
        "Ines",
        "Hall",
        "Voss",
        "Moss",
        "Kim",
    ],
    "colour": "blue green red black white dark grey|light brown|purple|yellow".replace("|", " ").split(),
    "thing": [
        "a Volvo",
        "a Fiat",
        "a bike",
        "a van",
        "an iPhone",
        "a Pixel",
        "a ThinkPad",
        "a MacBook",
        "an old Nokia",
    ],
    "food": ["tea", "coffee", "pasta", "fish", "mushrooms", "chocolate", "rice", "soup", "cheese", "apples"],
    "hobby": ["chess", "tennis", "the piano", "choir", "climbing", "football", "pottery", "swimming", "the violin"],
    "language": ["Danish", "German", "Turkish", "Spanish", "French", "Polish", "Hindi", "Italian"],
    "code": [
        "0170 555 123",
        "0170 555 987",
        "0151 22 46",
        "+44 20 7946",
        "4711",
        "2020",
        "v2.3",
        "v3.0",
        "8081",
        "9443",
    ],
}
_ONE = (
    ("I live in {}", "city"),
    ("{n} lives in {}", "city"),
    ("My sister lives in {}", "city"),
    ("I'm based in {}", "city"),
    ("Our office is in {}", "city"),
    ("I work at {}", "firm"),
    ("{n} works for {}", "firm"),
    ("My dad works at {}", "firm"),
    ("I work as a {}", "job"),
    ("I'm a {}", "job"),
    ("The office opens at {}", "time"),
    ("The shop closes at {}", "time"),
    ("My shift starts at {}", "time"),
    ("{n} gets up at {}", "time"),
    ("I go to bed at {}", "time"),
    ("Choir practice is on {}", "day"),
    ("The team meeting is on {}", "day"),
    ("My day off is {}", "day"),
    ("The deadline is {}", "date"),
    ("My appointment is on {}", "date"),
    ("The party is on {}", "date"),
    ("The release is planned for {}", "date"),
    ("I weigh {} kilos", "number"),
    ("I have {} children", "number"),
    ("We are {} people in the team", "number"),
    ("The rent is {} hundred a month", "number"),
    ("I take {} mg a day", "number"),
    ("My son is {}", "number"),
    ("Our cat is called {}", "name"),
    ("My boss is called {}", "name"),
    ("My dentist is Dr. {}", "name"),
    ("My girlfriend's name is {}", "name"),
    ("My favourite colour is {}", "colour"),
    ("My hair is {}", "colour"),
    ("The kitchen walls are {}", "colour"),
    ("I drive {}", "thing"),
    ("My phone is {}", "thing"),
    ("My phone number is {}", "code"),
    ("My door code is {}", "code"),
    ("The server runs on {}", "code"),
    ("My favourite food is {}", "food"),
    ("I prefer {} in the morning", "food"),
    ("My native language is {}", "language"),
)
_MANY = (
    ("I like {}", "food"),
    ("{n} loves {}", "food"),
    ("I'm allergic to {}", "food"),
    ("I had {} for lunch", "food"),
    ("I speak {}", "language"),
    ("I'm learning {}", "language"),
    ("I play {}", "hobby"),
    ("{n} enjoys {}", "hobby"),
    ("I've been to {}", "city"),
    ("We went to {} in spring", "city"),
    ("I have a friend in {}", "city"),
    ("I'd love to visit {}", "city"),
    ("I called {} yesterday", "name"),
    ("I met {} at the market", "name"),
    ("One of my cousins is called {}", "name"),
    ("I bought {} last year", "thing"),
    ("I once had {}", "thing"),
    ("I used to work at {}", "firm"),
    ("I used to live in {}", "city"),
    ("I have a T-shirt in {}", "colour"),
    ("One of our servers runs on {}", "code"),
    ("I gave a talk on {}", "date"),
    ("I ran {} miles on Sunday", "number"),
)
_APART = (
    ("I live in {}", "My brother lives in {}", "city"),
    ("I work at {}", "My wife works at {}", "firm"),
    ("My work number is {}", "My private number is {}", "code"),
    ("My older son is {}", "My younger son is {}", "number"),
    ("I prefer {} in the morning", "I prefer {} in the evening", "food"),
    ("My cat is called {}", "My dog is called {}", "name"),
    ("The shop opens at {}", "The bank opens at {}", "time"),
    ("The choir meets on {}", "The book club meets on {}", "day"),
    ("My flat is in {}", "My parents' house is in {}", "city"),
    ("My dentist is Dr. {}", "My GP is Dr. {}", "name"),
    ("The kitchen is {}", "The bathroom is {}", "colour"),
    ("I drive {}", "My husband drives {}", "thing"),
    ("I live in {}", "I grew up in {}", "city"),
    ("I work at {}", "I have an interview at {}", "firm"),
    ("The staging server runs on {}", "The live server runs on {}", "code"),
    ("I live in {}", "I'm in {} this week", "city"),
)
_NOW = ("{}", "{}", "{}", "{} now", "Now {}", "{} these days", "By the way, {}", "{} from this month on")


def value_pairs(count: int, random: Random) -> list[Pair]:
    """So many pairs: half changed, a third apart, the rest the same again."""
    return [_pair(random.random(), random) for _ in range(count)]


def _pair(draw: float, random: Random) -> Pair:
    if draw < 0.5:
        form, kind = random.choice(_ONE)
        one, other = random.sample(_VALUES[kind], 2)
        person = random.choice(_VALUES["name"])
        newer = random.choice(_NOW).format(form.format(other, n=person))
        return Pair(f"{form.format(one, n=person)}.", f"{newer}.", CHANGED, "values")
    if draw < 0.65:
        form, kind = random.choice(_MANY)
        one, other = random.sample(_VALUES[kind], 2)
        person = random.choice(_VALUES["name"])
        return Pair(f"{form.format(one, n=person)}.", f"{form.format(other, n=person)}.", APART, "values")
    if draw < 0.85:
        older, newer, kind = random.choice(_APART)
        one, other = random.sample(_VALUES[kind], 2)
        return Pair(f"{older.format(one)}.", f"{newer.format(other)}.", APART, "values")
    form, kind = random.choice(_ONE + _MANY)
    text = form.format(random.choice(_VALUES[kind]), n=random.choice(_VALUES["name"]))
    return Pair(f"{text}.", f"{random.choice(_NOW).format(text)}.", AGAIN, "values")
