"""The logical plan: what a query computes, without how, where or when."""
