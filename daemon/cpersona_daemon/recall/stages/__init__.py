"""What a recall does in turn: each stage takes the run and its rows, and returns rows. The pipeline says which in which
order.
"""
