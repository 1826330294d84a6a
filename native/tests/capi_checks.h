/* What capi_checks.c, which is plain C, checks of edgekit.h. */
#ifndef EDGEKIT_TESTS_CAPI_CHECKS_H_
#define EDGEKIT_TESTS_CAPI_CHECKS_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the program at path (inverter_program of width 8) in every way the interface has. Null when all is well,
 * otherwise what is not. */
const char* run_capi_checks(const char* path);

#ifdef __cplusplus
}
#endif

#endif /* EDGEKIT_TESTS_CAPI_CHECKS_H_ */
