# Estimates of robustbase and rrcov on the samples of second_step.py: method and numbers, a line each.
# Arguments: a kind of sample, a folder of CSV files and, for planes, their dimension.
suppressMessages({library(robustbase); library(rrcov)})
options <- commandArgs(trailingOnly = TRUE)
kind <- options[1]
folder <- options[2]
components <- as.integer(options[3])

labels_by <- function(d, ...) {
  coef(glmrob(d[, 1] ~ d[, -1] - 1, family = binomial, ...))
}

methods <- list(
  regression = list(
    lmrob = function(d) coef(lmrob(d[, 1] ~ d[, -1] - 1)),
    KS2014 = function(d) coef(lmrob(d[, 1] ~ d[, -1] - 1, setting = "KS2014"))
  ),
  covariance = list(
    covMcd = function(d) covMcd(d)$cov,
    CovMMest = function(d) getCov(CovMMest(d)),
    DetMCD = function(d) getCov(CovMcd(d, nsamp = "deterministic")),
    OGK = function(d) getCov(CovOgk(d))
  ),
  plane = list(
    PcaHubert = function(d) getLoadings(PcaHubert(d, k = components, mcd = FALSE))
  ),
  labels = list(
    Mqle = function(d) labels_by(d, method = "Mqle", control = glmrobMqle.control(maxit = 200)),
    robCov = function(d) {
      # weights on the predictors alone: a constant has no robust covariance
      x <- d[, -(1:2)]
      control <- glmrobMqle.control(maxit = 200)
      coef(glmrob(d[, 1] ~ x, family = binomial, weights.on.x = "robCov", control = control))
    },
    covMcd = function(d) {
      x <- d[, -(1:2)]
      control <- glmrobMqle.control(maxit = 200)
      coef(glmrob(d[, 1] ~ x, family = binomial, weights.on.x = "covMcd", control = control))
    },
    BY = function(d) {
      x <- d[, -(1:2)]
      coef(glmrob(d[, 1] ~ x, family = binomial, method = "BY"))
    }
  )
)

for (file in list.files(folder, pattern = "csv$", full.names = TRUE)) {
  data <- unname(as.matrix(read.csv(file, header = FALSE)))
  for (name in names(methods[[kind]])) {
    set.seed(1)
    found <- tryCatch(
      suppressWarnings(as.numeric(methods[[kind]][[name]](data))),
      error = function(e) NaN
    )
    found[is.na(found)] <- NaN
    cat(name, formatC(found, digits = 12), sep = ",")
    cat("\n")
  }
}
