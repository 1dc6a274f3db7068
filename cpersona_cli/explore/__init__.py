"""`cpersona explore`: the answer of a recall, looked at while its question is typed. Needs the extra `explore`."""
