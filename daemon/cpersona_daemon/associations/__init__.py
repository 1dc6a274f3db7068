"""Declared entities, aliases and relations: declare, traverse, reconstruct."""
