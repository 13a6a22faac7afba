"""The decode loop: sequences, scheduler, pauses, sampler, model runner."""
