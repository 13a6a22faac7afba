"""What of a chat lasts: small events, afterthoughts, errands and unclear persons are left out, life's events stay."""

from __future__ import annotations

import pytest

from ewe.longterm.plain_writing import plainly_written
from ewe.longterm.rule_facts import facts_by_rules


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        # What happened is kept with a when, where or who, or if it changes a life.
        ("I dropped a glove.", []),
        ("I've put up egg boxes.", []),
        ("I swam the Bosporus in 2019.", ["Ann swam the Bosporus in 2019."]),
        ("My brother won at chess when he was six.", ["Ann's brother won at chess when he was six."]),
        ("I sold the boat.", ["Ann sold the boat."]),
        ("I usually moor near Ulm.", ["Ann usually moors near Ulm."]),
        ("My flatmate clips his toenails in the kitchen.", ["Ann's flatmate clips his toenails in the kitchen."]),
        # Requests that name the speaker tell nothing.
        ("Explain mortgages to me like I'm a golden retriever", []),
        ("Is this right? Please check it for mistakes: I have lived in Ulm since 2019.", []),
        ("I need 3 synonyms for happy.", []),
        ("I need a cot for the hotel in Ulm.", ["Ann needs a cot for the hotel in Ulm."]),
        ("I'm trying to remember the name of a film.", []),
        # What is added stays, unless it says what is not so.
        ("I own an oak, about 60 cm across.", ["Ann owns an oak, about 60 cm across."]),
        ("I like history, not true crime.", ["Ann likes history."]),
        ("I speak German, Turkish and Greek.", ["Ann speaks German, Turkish and Greek."]),
        ("Fun fact, I once met Pelé in a lift.", ["Ann once met Pelé in a lift."]),
        ("Last summer, I cycled to Ulm.", ["Last summer, Ann cycled to Ulm."]),
        ("I'm 79, I grow orchids in Ulm.", ["Ann is 79.", "Ann grows orchids in Ulm."]),
        # What is said of others is cut from what is said of oneself.
        ("I run Ubuntu 22.04 and suspend hasn't worked for weeks.", ["Ann runs Ubuntu 22.04."]),
        ("I had an emergency section so I can't drive.", ["Ann had an emergency section.", "Ann can't drive."]),
        ("I can sew and Fatima knows everyone.", ["Ann can sew."]),
        # What is asked to be kept in mind, and what is put right.
        ("Remember that my gate code is 4471#.", ["Ann's gate code is 4471#."]),
        ("My code is 200 lines long and my code is broken.", []),
        ("Please remember: I'm lactose intolerant.", ["Ann is lactose intolerant."]),
        ("Don't forget that Elsa can't eat peanuts.", ["Elsa can't eat peanuts."]),
        ("Sorry, I meant my son Ben is 10.", ["Ann's son Ben is 10."]),
        ("Remember when I lived in Ulm? Remember to buy milk. Don't forget my birthday.", []),
        ("Remember I told you about Ulm.", []),
        # What is said of oneself as of others, and of two.
        ("I'm allergic to cats too.", ["Ann is allergic to cats."]),
        ("I do too.", []),
        ("Tomas and I are separating.", ["Tomas and Ann are separating."]),
        ("Tomas lost his job at Volvo.", ["Tomas lost his job at Volvo."]),
        ("Viggo turned 4.", ["Viggo turned 4."]),
        ("Actually, Viggo is 4, not 3.", ["Viggo is 4."]),
        ("Python is 3 times slower.", []),
        ("Elsa can't have peanuts.", ["Elsa can't have peanuts."]),
        # An address may hold the speaker's name.
        ("My email is ann.berg@example.org", ["Ann's email is ann.berg@example.org."]),
        ("My name is Ann Berg.", ["Ann's name is Ann Berg."]),
        ("My friend Ann told me that I snore.", []),
        # What "it" and "her" are, of what was just named.
        ("My number changed, it's 555-0142 now.", ["Ann's number changed.", "Ann's number is 555-0142 now."]),
        ("We got a puppy! Her name is Luna.", ["Ann and others got a puppy.", "Ann's puppy's name is Luna."]),
        ("We have a dog and a cat. He is 3.", ["Ann and others have a dog and a cat."]),
        # Whose is whose.
        ("My ex-wife kept the dog. She's moving to Ulm.", ["Ann's ex-wife kept the dog."]),
        ("My son lost the match. He's lost his job.", ["Ann's son lost the match.", "Ann's son has lost his job."]),
        ("Husband is offshore till May.", ["Ann's husband is offshore till May."]),
        ("We met at my cousin's christening in Ulm.", ["Ann and others met at Ann's cousin's christening in Ulm."]),
        ("My husband's Danish.", ["Ann's husband is Danish."]),
        ("My lad wants to, he's autistic.", ["Ann's lad is autistic."]),
        ("My sister, Freya, is a vet.", ["Ann's sister Freya is a vet."]),
        # What is asked of the other one, or not sure.
        ("I'd like a list of questions.", []),
        ("I'd like to cancel.", []),
        ("I have a question about git.", []),
        ("I think I broke my toe.", []),
        ("My boss seems nice.", []),
        ("I've got this landlord.", []),
        ("I am in Ulm if that matters.", ["Ann is in Ulm."]),
        ("Using pnpm 9 and Node 22.", ["Ann is using pnpm 9 and Node 22."]),
        ("I don't believe in God.", ["Ann doesn't believe in God."]),
        # A greeting before it, a request behind it and a role leave what is told.
        ("hiya, carer here, I look after a lady in Ulm.", ["Ann looks after a lady in Ulm."]),
        ("I have a parrot. Write an ad for my room.", ["Ann has a parrot."]),
        ("I have a parrot. Pretend to be one. I am hungry and I live in Ulm.", ["Ann has a parrot."]),
        ("Write an answer: I have a parrot.", []),
        # Moods, and what lost its middle.
        ("I'm doing well with the kids around.", []),
        ("I'm really upset seeing the state of our school.", []),
        ("I've been working on for a while.", []),
        ("I've been working on a novel for a while.", ["Ann has been working on a novel for a while."]),
    ],
)
def test_what_lasts_is_told_and_no_more(said: str, facts: list[str]) -> None:
    assert facts_by_rules("Ann", said) == facts


def test_apostrophes_that_were_left_out_are_written() -> None:
    assert plainly_written("i dont smoke") == "I don't smoke"
    assert plainly_written("my brothers getting married") == "my brother's getting married"
    assert plainly_written("my nose has been blocked") == "my nose has been blocked"
