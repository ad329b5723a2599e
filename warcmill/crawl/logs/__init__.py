"""The logs and figures of a launch, in the columns of Heritrix's. Writes to the launch's folder `logs` alone."""
