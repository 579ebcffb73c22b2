# Errors of robustbase's generalized linear models on the samples of glm.py, a line each.
suppressMessages(library(robustbase))
options <- commandArgs(trailingOnly = TRUE)
folder <- options[1]
family <- options[2]
runs <- as.integer(options[3])
truth <- as.numeric(strsplit(options[4], ",")[[1]])

size_of_error <- function(fit) {
  tryCatch(
    suppressWarnings(sqrt(sum((coef(fit()) - truth)^2))),
    error = function(e) NA
  )
}

for (i in seq_len(runs) - 1) {
  data <- as.matrix(read.csv(file.path(folder, paste0(i, ".csv")), header = FALSE))
  set.seed(i)
  if (family == "poisson") {
    y <- data[, 1]
    x <- data[, -1]
    errors <- c(
      size_of_error(function() glmrob(y ~ x, poisson, method = "Mqle")),
      size_of_error(function() glmrob(y ~ x, poisson, method = "Mqle", weights.on.x = list(covMcd))),
      size_of_error(function() glmrob(y ~ x, poisson, method = "MT"))
    )
  } else if (family == "gamma") {
    y <- data[, 1]
    x <- data[, -1]
    errors <- c(
      size_of_error(function() glmrob(y ~ x, Gamma("log"), method = "Mqle")),
      size_of_error(function() glmrob(y ~ x, Gamma("log"), method = "Mqle", weights.on.x = list(covMcd)))
    )
  } else if (family == "binomial") {
    y <- data[, 1:2]
    x <- data[, -(1:2)]
    errors <- c(
      size_of_error(function() glmrob(y ~ x, binomial, method = "Mqle")),
      size_of_error(function() glmrob(y ~ x, binomial, method = "Mqle", weights.on.x = list(covMcd)))
    )
  } else {
    y <- data[, 1]
    x <- data[, -1]
    errors <- c(
      size_of_error(function() glmrob(y ~ x, binomial, method = "Mqle")),
      size_of_error(function() glmrob(y ~ x, binomial, method = "Mqle", weights.on.x = list(covMcd))),
      size_of_error(function() glmrob(y ~ x, binomial, method = "BY")),
      size_of_error(function() glmrob(y ~ x, binomial, method = "WBY"))
    )
  }
  cat(paste(formatC(errors, digits = 10), collapse = ","), "\n", sep = "")
}
