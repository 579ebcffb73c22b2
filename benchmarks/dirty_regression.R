# Squared errors of robustbase's regressions on the samples of dirty_regression.py, a line each.
suppressMessages(library(robustbase))
options <- commandArgs(trailingOnly = TRUE)
folder <- options[1]
runs <- as.integer(options[2])
kept <- 1 - as.numeric(options[3])

squared_error <- function(fit) sum((coef(fit) - 1)^2)

for (i in seq_len(runs) - 1) {
  data <- as.matrix(read.csv(file.path(folder, paste0(i, ".csv")), header = FALSE))
  y <- data[, 1]
  x <- data[, -1]
  set.seed(i)
  errors <- suppressWarnings(c(
    squared_error(lmrob(y ~ x)),
    squared_error(lmrob(y ~ x, setting = "KS2014")),
    squared_error(ltsReg(x, y, alpha = kept))
  ))
  cat(paste(formatC(errors, digits = 10), collapse = ","), "\n", sep = "")
}
