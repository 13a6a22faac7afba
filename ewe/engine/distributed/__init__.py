"""One model in several processes: rank 0 plans and samples, the workers run the same passes over their own parts."""
