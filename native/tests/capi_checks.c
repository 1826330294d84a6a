#include "tests/capi_checks.h"

#include <edgekit/edgekit.h>
#include <string.h>

#define REQUIRE(condition)               \
  do {                                   \
    if (!(condition)) return #condition; \
  } while (0)

enum { kWidth = 8 };

static const char* check_info(const ek_session* session) {
  ek_tensor_info info;
  REQUIRE(ek_input_count(session) == 1);
  REQUIRE(ek_output_count(session) == 1);
  REQUIRE(ek_input_info(session, 0, &info) == EK_OK);
  REQUIRE(strcmp(info.name, "x") == 0);
  REQUIRE(info.dtype == EK_F32 && info.rank == 1 && info.dims[0] == kWidth && info.size_bytes == 4 * kWidth);
  REQUIRE(ek_output_info(session, 0, &info) == EK_OK);
  REQUIRE(strcmp(info.name, "y") == 0 && info.dtype == EK_U8 && info.size_bytes == kWidth);
  REQUIRE(ek_output_info(session, 1, &info) == EK_INVALID_INPUT);
  REQUIRE(strstr(ek_last_error(), "output 1 does not exist") != NULL);
  return NULL;
}

static const char* check_runs(ek_session* session) {
  static float x[kWidth]; /* static: the last run may go on after this function has returned */
  static unsigned char y[kWidth];
  for (int i = 0; i < kWidth; ++i) x[i] = (float)i; /* quantized to 16 * i + 8 */
  memset(y, 1, sizeof(y));
  REQUIRE(ek_run(session) == EK_INVALID_INPUT);
  REQUIRE(strstr(ek_last_error(), "not bound") != NULL);
  REQUIRE(ek_bind_input(session, 0, x, sizeof(x) - 1) == EK_INVALID_INPUT);
  REQUIRE(ek_bind_input(session, 0, x, sizeof(x)) == EK_OK);
  REQUIRE(ek_bind_output(session, 0, y, sizeof(y)) == EK_OK);
  REQUIRE(ek_run(session) == EK_OK);
  for (int i = 0; i < kWidth; ++i) REQUIRE(y[i] == 255 - (16 * i + 8));
  memset(y, 1, sizeof(y));
  REQUIRE(ek_wait(session, 0) == EK_INVALID_INPUT); /* nothing was submitted */
  for (int round = 0; round < 50; ++round) {
    REQUIRE(ek_submit(session) == EK_OK);
    REQUIRE(ek_submit(session) == EK_RUNTIME_ERROR);
    ek_status status = ek_wait(session, 0);
    while (status == EK_TIMEOUT) status = ek_wait(session, round % 2 ? -1 : 1);
    REQUIRE(status == EK_OK);
    REQUIRE(y[kWidth - 1] == 255 - (16 * (kWidth - 1) + 8));
  }
  REQUIRE(ek_submit(session) == EK_OK); /* freed while it runs */
  return NULL;
}

static const char* check_null_arguments(void) {
  ek_model* model = NULL;
  ek_session* session = NULL;
  REQUIRE(ek_model_open(NULL, NULL, &model) == EK_INVALID_INPUT);
  REQUIRE(ek_model_open("x", NULL, NULL) == EK_INVALID_INPUT);
  REQUIRE(ek_session_create(NULL, 0, &session) == EK_INVALID_INPUT);
  REQUIRE(ek_run(NULL) == EK_INVALID_INPUT);
  REQUIRE(ek_submit(NULL) == EK_INVALID_INPUT);
  REQUIRE(ek_wait(NULL, 0) == EK_INVALID_INPUT);
  REQUIRE(ek_input_count(NULL) == 0);
  ek_model_free(NULL);
  ek_session_free(NULL);
  return NULL;
}

const char* run_capi_checks(const char* path) {
  ek_model* model = NULL;
  ek_session* session = NULL;
  const char* problem = check_null_arguments();
  if (problem != NULL) return problem;
  REQUIRE(strlen(ek_version()) > 0);
  REQUIRE(strlen(ek_active_isa()) > 0);
  REQUIRE(ek_model_open("/nonexistent/model.ekn", NULL, &model) == EK_IO_ERROR);
  REQUIRE(strstr(ek_last_error(), "/nonexistent/model.ekn") != NULL);
  REQUIRE(ek_model_open(path, "x86_sse9", &model) == EK_INVALID_INPUT);
  REQUIRE(ek_model_open(path, NULL, &model) == EK_OK);
  REQUIRE(strcmp(ek_model_isa(model), "scalar") == 0);
  REQUIRE(ek_model_plan_count(model) == 1);
  REQUIRE(ek_session_create(model, -1, &session) == EK_INVALID_INPUT);
  REQUIRE(ek_session_create(model, 0, &session) == EK_OK);
  ek_model_free(model); /* the session keeps what it needs */
  REQUIRE(ek_select_plan(session, 7) == EK_INVALID_INPUT);
  problem = check_info(session);
  if (problem == NULL) problem = check_runs(session);
  ek_session_free(session);
  return problem;
}
