"""The seats' images: locks, build, verification, and the ways to a lab machine."""
