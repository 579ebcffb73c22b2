# Robust estimates of robustbase and rrcov on the data sets that ship, written beside this file.
# Run at the root of a checkout: Rscript tests/reference/make_reference.R
suppressMessages({library(robustbase); library(rrcov)})
set.seed(1)
here <- "tests/reference"
read <- function(name) read.csv(file.path("datasets", paste0(name, ".csv")))
put <- function(table, name)
  write.csv(format(table, digits = 10, trim = TRUE), file.path(here, paste0(name, ".csv")),
            row.names = FALSE, quote = FALSE)

rows <- function(data, what, name, value)
  data.frame(data = rep(data, length(name)), what = rep(what, length(name)), name = name,
             value = rep_len(value, length(name)))

# Regression: coefficients, their standard errors, the scale, and rows of robustness weight < 0.1.
regression <- function(name, formula) {
  fit <- lmrob(formula, read(name))
  coefs <- summary(fit)$coefficients
  outliers <- which(weights(fit, type = "robustness") < 0.1) - 1
  rbind(rows(name, "coef", rownames(coefs), coefs[, 1]),
        rows(name, "se", rownames(coefs), coefs[, 2]),
        rows(name, "scale", "scale", fit$scale),
        rows(name, "outlier", outliers, 1))
}
put(rbind(regression("hbk", y ~ x1 + x2 + x3), regression("stars_cyg", log_light ~ log_te),
          regression("phones", calls ~ year)), "lmrob")

# Location, covariance and distances: x of hbk, both columns of stars_cyg.
scatter <- function(name, columns) {
  x <- read(name)[, columns]
  fit <- covMcd(x)
  far <- which(mahalanobis(x, fit$center, fit$cov) > qchisq(0.999, length(columns))) - 1
  pairs <- outer(columns, columns, paste)
  rbind(rows(name, "mean", columns, fit$center),
        rows(name, "cov", as.vector(pairs), as.vector(fit$cov)),
        rows(name, "outlier", far, 1))
}
put(rbind(scatter("hbk", c("x1", "x2", "x3")), scatter("stars_cyg", c("log_te", "log_light"))),
    "covMcd")

# Principal components: the direction of the stars, the plane of hbk.
components <- function(name, columns, k) {
  fit <- PcaHubert(as.matrix(read(name)[, columns]), k = k, mcd = FALSE)
  far <- which(!fit@flag) - 1
  pairs <- outer(columns, seq_len(k), paste)
  rbind(rows(name, "loading", as.vector(pairs), as.vector(getLoadings(fit))),
        rows(name, "eigenvalue", seq_len(k), getEigenvalues(fit)),
        rows(name, "center", columns, getCenter(fit)),
        rows(name, "outlier", far, 1))
}
put(rbind(components("stars_cyg", c("log_te", "log_light"), 1),
          components("hbk", c("x1", "x2", "x3", "y"), 2)), "PcaHubert")

# Data sets that tests fit: monthly use of steam (robustbase), housing in Boston (MASS).
store <- function(table, name) {
  names(table) <- gsub(".", "_", names(table), fixed = TRUE)
  write.csv(table, file.path(here, paste0(name, ".csv")), row.names = FALSE, quote = FALSE)
}
data(steamUse, package = "robustbase")
store(steamUse, "steamUse")
store(MASS::Boston, "Boston")

# Data near separation: vaso of robustbase; birthwt and the complete rows of biopsy of MASS.
data(vaso, package = "robustbase")
put(vaso, "vaso")
put(MASS::birthwt, "birthwt")
put(na.omit(MASS::biopsy)[, -1], "biopsy")
