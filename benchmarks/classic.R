# Fits of robustbase and rrcov to the classic data of classic.py: one line of numbers per method.
suppressMessages({library(robustbase); library(rrcov)})
options <- commandArgs(trailingOnly = TRUE)
kind <- options[1]
data <- read.csv(options[2])
put <- function(name, ...) cat(name, formatC(c(...), digits = 12), sep = ",", fill = 1e6)
set.seed(1)

if (kind == "regression") {
  y <- data[, 1]
  x <- as.matrix(data[, -1])
  mm <- lmrob(y ~ x)
  put("lmrob (robustbase)", coef(mm), mm$scale)
  lts <- ltsReg(x, y)
  put("ltsReg (robustbase)", coef(lts), lts$scale)
} else if (kind == "points") {
  mcd <- covMcd(data)
  put("covMcd (robustbase)", mcd$cov, mcd$mah)
  mm <- CovMMest(data)
  put("CovMMest (rrcov)", getCov(mm), getDistance(mm))
} else if (kind == "axis") {
  hubert <- PcaHubert(data, k = 1)
  flags <- as.numeric(!hubert@flag)
  put("PcaHubert (rrcov)", getEigenvalues(hubert)[1], flags)
} else if (kind == "counts") {
  fit <- glmrob(Ysum ~ Age10 + Base4 * Trt, family = poisson, data = data)
  put("glmrob Mqle (robustbase)", coef(fit), sqrt(diag(fit$cov)))
}
