/* A plain C loop of the work that the compiled engine does, to measure the engine against.

   One hop: the agent's update, its visits counted, the sums of the history kept up in O(p), a row where one is
   due, the sums formed anew once a lap. With BARE there is the update alone, and no history at all. P is the dimension, R the
   rank of every Hessian; all are set when compiling. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef P
#define P 2
#endif
#ifndef R
#define R 2
#endif
#ifndef BARE
#define BARE 0
#endif

typedef struct {
    double accuracy, error, second, first[P], reference[P];
} sums;

static void sum_anew(long n, const double *x, const double *optimum, double *distances, const double *token, sums *s) {
    s->accuracy = s->error = s->second = 0.0;
    for (int d = 0; d < P; d++) {
        s->first[d] = 0.0;
        s->reference[d] = token[d];
    }
    for (long i = 0; i < n; i++) {
        double far = 0.0;
        for (int d = 0; d < P; d++) {
            double gap = x[i * P + d] - optimum[d];
            far += gap * gap;
            double spread = x[i * P + d] - s->reference[d];
            s->second += spread * spread;
            s->first[d] += spread;
        }
        distances[2 * i + 1] = sqrt(far);
        s->accuracy += distances[2 * i + 1] * distances[2 * i];
        s->error += distances[2 * i + 1];
    }
}

static void keep_up(long i, const double *x, const double *before, const double *optimum,
                    double *distances, sums *s) {
    double far = 0.0;
    for (int d = 0; d < P; d++) {
        double now = x[i * P + d], gap = now - optimum[d], change = now - before[d];
        far += gap * gap;
        s->first[d] += change;
        s->second += change * (now + before[d] - 2.0 * s->reference[d]);
    }
    far = sqrt(far);
    s->accuracy += (far - distances[2 * i + 1]) * distances[2 * i];
    s->error += far - distances[2 * i + 1];
    distances[2 * i + 1] = far;
}

static void write_row(long row, long n, const sums *s, const double *token, double *accuracy, double *error,
                      double *consensus, double *tokens) {
    double square = s->second / n;
    for (int d = 0; d < P; d++) {
        double shift = token[d] - s->reference[d];
        square += shift * shift - 2.0 * shift * s->first[d] / n;
        tokens[row * P + d] = token[d];
    }
    accuracy[row] = s->accuracy / n;
    error[row] = s->error / n;
    consensus[row] = sqrt(square > 0.0 ? square : 0.0);
}

/* Philox4x64-10: the first of the four words, as a number from [0, 1). */
static double draw(uint64_t seed, uint64_t agent, uint64_t hop, uint64_t purpose) {
    uint64_t c0 = hop + 1, c1 = purpose, c2 = 0, c3 = 0;
    for (int turn = 0; turn < 10; turn++) {
        unsigned __int128 a = (unsigned __int128)0xD2E7470EE14C6C93ULL * c0;
        unsigned __int128 b = (unsigned __int128)0xCA5A826395121157ULL * c2;
        c0 = (uint64_t)(b >> 64) ^ c1 ^ seed;
        c1 = (uint64_t)b;
        c2 = (uint64_t)(a >> 64) ^ c3 ^ agent;
        c3 = (uint64_t)a;
        seed += 0x9E3779B97F4A7C15ULL;
        agent += 0xBB67AE8584CAA73BULL;
    }
    return (c0 >> 11) * 0x1p-53;
}

/* The loop around an update, given as a block of statements that computes `new` from `token` and agent i. */
#define TRAVEL(PENALTY, UPDATE)                                                                                \
    double token[P] = {0}, before[P], new[P];                                                                  \
    sums s;                                                                                                    \
    long since = n, row = 0, place = 0, next = 0;                                                              \
    for (long hop = 0;; hop++, since++) {                                                                      \
        if (!BARE && since >= n) {                                                                             \
            sum_anew(n, x, optimum, distances, token, &s);                                                     \
            since = 0;                                                                                         \
        }                                                                                                      \
        if (!BARE && hop == next) {                                                                            \
            write_row(row++, n, &s, token, accuracy, error, consensus, tokens);                                \
            next += every;                                                                                     \
        }                                                                                                      \
        if (hop == hops) break;                                                                                \
        long i = order[place];                                                                                 \
        if (++place == n) place = 0;                                                                           \
        double *xi = x + i * P, *yi = y + i * P, *share = shares + i * P;                                      \
        double penalty = PENALTY;                                                                              \
        UPDATE;                                                                                                \
        for (int d = 0; d < P; d++) {                                                                          \
            before[d] = xi[d];                                                                                 \
            double multiplier = yi[d] + penalty * (token[d] - new[d]);                                         \
            double moved = token[d] + (new[d] - multiplier * (1.0 / rho) - share[d]) * (1.0 / n);              \
            share[d] += n * (moved - token[d]);                                                                \
            token[d] = moved;                                                                                  \
            xi[d] = new[d];                                                                                    \
            yi[d] = multiplier;                                                                                \
        }                                                                                                      \
        if (!BARE) keep_up(i, x, before, optimum, distances, &s);                                              \
        visits[i]++;                                                                                           \
    }                                                                                                          \
    for (int d = 0; d < P; d++) final[d] = token[d];

#define STATE                                                                                                  \
    long n, long hops, long every, const long *order, double rho, double *x, double *y, double *shares,        \
        long *visits, const double *optimum, double *distances, double *accuracy, double *error,               \
        double *consensus, double *tokens, double *final

/* (H + penalty)⁻¹(g + w) from the eigenvectors and eigenvalues of H, g being given along the eigenvectors;
   R < P leaves a part outside their span. */
#define BY_EIGENVECTORS                                                                                        \
    double w[P];                                                                                               \
    for (int d = 0; d < P; d++) {                                                                              \
        w[d] = penalty * token[d] + yi[d];                                                                     \
        new[d] = R == P ? 0.0 : w[d];                                                                          \
    }                                                                                                          \
    for (long j = i * R; j < i * R + R; j++) {                                                                 \
        double pull = vectors[j * P] * w[0];                                                                   \
        for (int d = 1; d < P; d++) pull += vectors[j * P + d] * w[d];                                         \
        double reciprocal = 1.0 / (values[j] + penalty);                                                       \
        pull = (R == P ? known[j] + pull : known[j] * penalty - pull * values[j]) * reciprocal;                \
        for (int d = 0; d < P; d++) new[d] += pull * vectors[j * P + d];                                       \
    }                                                                                                          \
    if (R != P)                                                                                                \
        for (int d = 0; d < P; d++) new[d] *= 1.0 / penalty;

void iadmm(STATE, const double *vectors, const double *values, const double *known) {
    TRAVEL(rho, BY_EIGENVECTORS)
}

void piadmm1(STATE, const double *vectors, const double *values, const double *known, uint64_t seed, double width) {
    TRAVEL(rho * (1.0 + width * (2.0 * draw(seed, i, hop, 1) - 1.0)), BY_EIGENVECTORS)
}

/* Many seeds, one after another on all threads: every lane begins at 0 and keeps a history of its own. */
void piadmm1_lanes(long lanes, long n, long hops, long every, long rows, const long *order, double rho,
                   const double *optimum, const double *vectors, const double *values, const double *known,
                   double width, double *errors, double *finals) {
    double first = 0.0;
    for (int d = 0; d < P; d++) first += optimum[d] * optimum[d];
    first = 1.0 / sqrt(first);
#pragma omp parallel for schedule(dynamic)
    for (long lane = 0; lane < lanes; lane++) {
        double *states = calloc(n * (3 * P + 2) + rows * (2 + P), sizeof(double)), *x = states, *y = x + n * P;
        double *shares = y + n * P, *distances = shares + n * P, *accuracy = distances + 2 * n;
        double *consensus = accuracy + rows, *tokens = consensus + rows;
        long *visits = calloc(n, sizeof(long));
        for (long i = 0; i < n; i++) distances[2 * i] = first;
        piadmm1(n, hops, every, order, rho, x, y, shares, visits, optimum, distances, accuracy, errors + lane * rows,
                consensus, tokens, finals + lane * P, vectors, values, known, (uint64_t)lane, width);
        free(states);
        free(visits);
    }
}

/* What a programmer would write who knows that the penalty never changes: x⁺ = A_i(ρz + y) + b_i. */
void iadmm_inverse(STATE, const double *inverse, const double *offset) {
    TRAVEL(rho, double w[P]; for (int d = 0; d < P; d++) {
        w[d] = penalty * token[d] + yi[d];
        new[d] = offset[i * P + d];
    } for (int e = 0; e < P; e++) for (int d = 0; d < P; d++) new[d] += inverse[(i * P + e) * P + d] * w[e];)
}

void logistic(STATE, const double *rows, const long *starts, const double *scale) {
    TRAVEL(rho, double slope[P] = {0}; for (long j = starts[i]; j < starts[i + 1]; j++) {
        double margin = 0.0;
        for (int d = 0; d < P; d++) margin += rows[j * P + d] * xi[d];
        double factor = -scale[i] / (1.0 + exp(margin < 700.0 ? margin : 700.0));
        for (int d = 0; d < P; d++) slope[d] += factor * rows[j * P + d];
    } for (int d = 0; d < P; d++) new[d] = (penalty * token[d] + yi[d] - slope[d]) * (1.0 / penalty);)
}
