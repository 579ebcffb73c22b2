# Estimates of robustbase and rrcov for the samples of errors.py: method and numbers, a line each.
suppressMessages({library(robustbase); library(rrcov)})
options <- commandArgs(trailingOnly = TRUE)
kind <- options[1]
folder <- options[2]

methods <- list(
  regression = list(
    lmrob = function(d) coef(lmrob(d[, 1] ~ d[, -1])),
    ltsReg = function(d) coef(ltsReg(d[, -1], d[, 1]))
  ),
  labels = list(
    "glmrob BY" = function(d) coef(glmrob(d[, 1] ~ d[, -1], family = binomial, method = "BY")),
    "glmrob Mqle" = function(d) {
      control <- glmrobMqle.control(maxit = 200)
      coef(glmrob(d[, 1] ~ d[, -1], family = binomial, method = "Mqle", control = control))
    }
  ),
  axis = list(
    PcaHubert = function(d) getLoadings(PcaHubert(d, k = 1, mcd = FALSE))[, 1],
    PcaGrid = function(d) getLoadings(PcaGrid(d, k = 1))[, 1]
  ),
  covariance = list(
    covMcd = function(d) covMcd(d)$cov,
    CovMMest = function(d) getCov(CovMMest(d))
  )
)

set.seed(1)
for (file in list.files(folder, full.names = TRUE)) {
  data <- unname(as.matrix(read.csv(file, header = FALSE)))
  for (name in names(methods[[kind]])) {
    found <- tryCatch(
      suppressWarnings(as.numeric(methods[[kind]][[name]](data))),
      error = function(e) NaN
    )
    found[is.na(found)] <- NaN
    cat(name, formatC(found, digits = 12), sep = ",")
    cat("\n")
  }
}
