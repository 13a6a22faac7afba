"""What a new statement changes about an older one, read by rules of English: no model, nothing learnt."""
