# Times one method on the data that benchmarks/peers.py writes, and prints the seconds of a run.
# Usage: Rscript peers.R METHOD FILE N COLUMNS. The file has doubles, column by column; in
# regressions the response is the first column and the constant the second.
args <- commandArgs(trailingOnly = TRUE)
method <- args[1]
shape <- as.integer(args[3:4])
data <- matrix(readBin(args[2], "double", prod(shape)), nrow = shape[1])
library(robustbase)
if (method %in% c("CovMMest", "PcaHubert")) suppressMessages(library(rrcov))
set.seed(0)

y <- data[, 1]
x <- data[, -1, drop = FALSE]
fits <- list(
  lmrob = function() lmrob(y ~ x - 1),
  ltsReg = function() ltsReg(x[, -1, drop = FALSE], y),
  glmrob = function() glmrob(y ~ x - 1, family = binomial),
  covMcd = function() covMcd(data),
  CovMMest = function() CovMMest(data),
  PcaHubert = function() PcaHubert(data, k = 2)
)

# Short runs are doubled until the clock, which counts milliseconds, resolves them; this also
# leaves out what only the first run pays for.
seconds <- function(fit, enough = 0.15) {
  runs <- 1
  repeat {
    taken <- sum(system.time(for (i in seq_len(runs)) fit())[1:2])
    if (taken > enough) return(taken / runs)
    runs <- 2 * runs
  }
}

cat(suppressWarnings(seconds(fits[[method]])), "\n")
