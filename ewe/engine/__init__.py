"""The decode loop: sequences, scheduler, policies' runner, sampler, model runner."""
