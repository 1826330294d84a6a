/* clang-format off: the example keeps its lines. */
/* edgekit.h: the C interface of edgekit's native runtime.
 *
 * Header and shared library are built and installed from a checkout, then linked with -ledgekit:
 *
 *     cmake -S . -B build/c -DEDGEKIT_TOOLS=ON
 *     cmake --build build/c --target edgekit_shared
 *     cmake --install build/c --prefix /usr/local
 *
 * A model is opened from a package (.ekpkg) or a program (.ekn) and shared by sessions; each session is one stream of
 * inferences. Typical use:
 *
 *     ek_model* model = NULL;
 *     ek_session* session = NULL;
 *     if (ek_model_open("detector.ekpkg", NULL, &model) != EK_OK) {
 *       fprintf(stderr, "%s\n", ek_last_error());
 *       exit(1);
 *     }
 *     if (ek_session_create(model, 0, &session) != EK_OK) ...
 *     ek_bind_input(session, 0, image, image_bytes);
 *     ek_bind_output(session, 0, boxes, boxes_bytes);
 *     while (next_frame(image)) { ek_run(session); use(boxes); }
 *     ek_session_free(session);
 *     ek_model_free(model);
 *
 * Ownership: what ek_model_open and ek_session_create give is freed with ek_model_free and ek_session_free, in any
 * order (sessions keep their model alive). Bound memory stays the caller's: it must live and stay in place until it is
 * bound anew or the session is freed. Strings belong to the library: names live as long as the model, the error message
 * until the next failing call on the same thread.
 *
 * Threads: a model may be used from any number of threads at once. A session serves one thread at a time; a second one
 * gets EK_RUNTIME_ERROR at once. All sessions share one pool of workers in the process, which sleep between runs. After
 * fork() the child can't use the parent's sessions (EK_CLOSED) but may open models of its own.
 *
 * Every function that can fail returns an ek_status and leaves a one-line message for ek_last_error(). No function
 * throws, aborts or prints. */
/* clang-format on */
#ifndef EDGEKIT_EDGEKIT_H_
#define EDGEKIT_EDGEKIT_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define EK_API __attribute__((visibility("default")))
#else
#define EK_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ek_status {
  EK_OK = 0,
  EK_INVALID_PROGRAM = 1, /* the file is damaged, hostile or of another format */
  EK_INVALID_INPUT = 2,   /* an argument is wrong */
  EK_UNSUPPORTED_ISA = 3, /* the CPU lacks a feature that the program needs */
  EK_OUT_OF_MEMORY = 4,
  EK_IO_ERROR = 5,
  EK_RUNTIME_ERROR = 6, /* an op failed on these values, or the session is in use */
  EK_CLOSED = 7,        /* the process forked after the session was made */
  EK_TIMEOUT = 8        /* ek_wait: not done yet */
} ek_status;

typedef enum ek_dtype { EK_F32 = 0, EK_S8 = 1, EK_U8 = 2, EK_I32 = 3, EK_I64 = 4, EK_BOOL = 5 } ek_dtype;

#define EK_MAX_RANK 6

typedef struct ek_model ek_model;
typedef struct ek_session ek_session;

/* An input or output. Tensors are dense, row-major. Quantized when scale > 0: real = (q - zero_point) * scale. */
typedef struct ek_tensor_info {
  const char* name; /* UTF-8 */
  ek_dtype dtype;
  int32_t rank;
  int32_t dims[EK_MAX_RANK];
  uint64_t size_bytes;
  float scale;
  int32_t zero_point;
} ek_tensor_info;

/* "major.minor.patch" of the library. */
EK_API const char* ek_version(void);

/* Message of the last failing call on this thread, "" when there was none. Never null. */
EK_API const char* ek_last_error(void);

/* The instruction set in force, such as "x86_avx2": EDGEKIT_ISA where that is set and supported, else the best. */
EK_API const char* ek_active_isa(void);

/* Opens and verifies a model. path is a .ekn file or a package; of a package, the native variant with the best
 * instruction set that this CPU has is taken, and only that one is verified: `edgekit inspect` verifies every byte.
 * isa: NULL, or the name of an instruction set to stay within ("scalar" runs all). */
EK_API ek_status ek_model_open(const char* path, const char* isa, ek_model** model);
EK_API void ek_model_free(ek_model* model); /* null is fine */

/* The instruction set that the model's weights are packed for. */
EK_API const char* ek_model_isa(const ek_model* model);

/* Number of shape buckets (plans), smallest first; at least 1. */
EK_API size_t ek_model_plan_count(const ek_model* model);

/* Makes a session on plan 0. threads within an inference: 0 for every usable core. */
EK_API ek_status ek_session_create(const ek_model* model, int threads, ek_session** session);
EK_API void ek_session_free(ek_session* session); /* null is fine; waits for what was submitted */

/* Chooses the shape bucket; inputs and outputs must be bound for each bucket. */
EK_API ek_status ek_select_plan(ek_session* session, size_t plan);

/* Inputs and outputs of the selected plan. */
EK_API size_t ek_input_count(const ek_session* session);
EK_API size_t ek_output_count(const ek_session* session);
EK_API ek_status ek_input_info(const ek_session* session, size_t index, ek_tensor_info* info);
EK_API ek_status ek_output_info(const ek_session* session, size_t index, ek_tensor_info* info);

/* Binds memory of exactly info.size_bytes bytes, aligned to the element size. Inputs are read in place, never written.
 */
EK_API ek_status ek_bind_input(ek_session* session, size_t index, const void* data, uint64_t size_bytes);
EK_API ek_status ek_bind_output(ek_session* session, size_t index, void* data, uint64_t size_bytes);

/* Runs once and returns when the outputs are written. Allocates nothing. */
EK_API ek_status ek_run(ek_session* session);

/* Starts a run on a thread of the session and returns. Until ek_wait has returned something other than EK_TIMEOUT, the
 * session and the bound memory belong to the run. */
EK_API ek_status ek_submit(ek_session* session);

/* Waits for the submitted run and returns its status; timeout_ms < 0 waits without limit. */
EK_API ek_status ek_wait(ek_session* session, int64_t timeout_ms);

#ifdef __cplusplus
}
#endif

#endif /* EDGEKIT_EDGEKIT_H_ */
