"""Running models: loading, sessions and their pool, cores, the camera pipeline."""
