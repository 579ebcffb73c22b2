# Rows whose residuals lmrob finds larger than 2.5 of its scale, in the data of test_classic_data.py.
#   Rscript classic_data.R
library(robustbase)
flagged <- function(name, formula, data) {
  fit <- lmrob(formula, data)
  rows <- which(abs(residuals(fit)) / fit$scale > 2.5)
  data.frame(data = name, row = unname(rows))
}
found <- rbind(
  flagged("coleman", Y ~ ., coleman),
  flagged("delivery", delTime ~ ., delivery),
  flagged("education", Y ~ X1 + X2 + X3, education)
)
write.csv(found, "lmrob_flags.csv", row.names = FALSE, quote = FALSE)
