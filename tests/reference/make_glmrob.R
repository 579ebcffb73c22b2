# Robust generalized linear models of robustbase, and their data, written beside this file.
# Run at the root of a checkout: Rscript tests/reference/make_glmrob.R
suppressMessages(library(robustbase))
here <- "tests/reference"
put <- function(table, name)
  write.csv(table, file.path(here, paste0(name, ".csv")), row.names = FALSE, quote = FALSE)

data(epilepsy, possumDiv, carrots, package = "robustbase")
put(epilepsy, "epilepsy")
put(possumDiv, "possumDiv")
put(carrots, "carrots")

# Coefficients, their standard errors where there are any, and robustness weights of the rows.
rows <- function(data, method, what, name, value)
  data.frame(data = data, method = method, what = what, name = name,
             value = formatC(value, digits = 10))

found <- function(data, method, fit, se = sqrt(diag(vcov(fit)))) {
  coefs <- coef(fit)
  rbind(rows(data, method, "coef", names(coefs), coefs),
        if (length(se)) rows(data, method, "se", names(coefs), se),
        rows(data, method, "weight", seq_along(fit$w.r) - 1, fit$w.r))
}

seizures <- Ysum ~ Age10 + Base4 * Trt
set.seed(1)
put(rbind(
  found("epilepsy", "Mqle", glmrob(seizures, poisson, epilepsy, method = "Mqle",
                                   control = glmrobMqle.control(tcc = 1.2, maxit = 100))),
  found("epilepsy", "MT", glmrob(seizures, poisson, epilepsy, method = "MT"), se = c()),
  found("possumDiv", "Mqle", glmrob(Diversity ~ ., poisson, possumDiv, method = "Mqle",
                                    weights.on.x = "hat", tcc = 1.5)),
  found("carrots", "Mqle", glmrob(cbind(success, total - success) ~ logdose + block, binomial,
                                  carrots, method = "Mqle",
                                  control = glmrobMqle.control(tcc = 1.2)))
), "glmrob")
