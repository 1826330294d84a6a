"""Pictures: sources, the image transform, task post-processing, results, drawing."""
