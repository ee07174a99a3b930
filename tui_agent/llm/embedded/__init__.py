"""A real model on llama.cpp for machines without Ollama, in a process of its own."""
