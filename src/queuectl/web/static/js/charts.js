// Charts: drawn from the tables behind them.
