// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Accepts jobs, has them checked, hands them to the core and delivers their completions in order.
///
///   start --> [arguments] --> hotline_job_check --good--> job_* --> core --> res_* --+
///                  |                             \                                   v
///                  +-- tag, record pointer --> [queue of 2: verdict] -------> [completion]
///                                                                                    |
///                    RESULT, done <-- previous one taken -- response <-- record_start_o
///
/// Accepting. A job is accepted when `start_i` finds the argument latch free, fewer than two jobs
/// accepted and not done, and no abort pending; `accept_o` is the pulse that latches the arguments
/// (outside) and clears `start`. A bad job leaves the latch at its verdict and completes behind
/// earlier jobs without the core; a good one waits in the latch until the core takes it.
///
/// Completing. The oldest job's result (or verdict) is taken when no completion is being delivered;
/// then the record is written, and when its response is there and the previous completion was taken
/// (`resume_i`), it goes to RESULT and `done_o` rises.
///
/// Aborting. While `abort_i` (the register bit) is high nothing is accepted, so jobs accepted after
/// the write of ABORT are never aborted. `abort_o` is high from then on while the core has a job. A
/// job that waits in the latch stays offered and ends in the core, which counts epochs; a core may
/// take it during the abort or when `abort_o` has fallen (it then rises again). `abort_clear_o` is
/// high when every accepted job has its status, even if the host has yet to take completions.
///
/// Throughput  The core may hold two jobs; one is checked in 9 cycles while they run. A completion
///             takes the record's write (beats + memory latency) plus 3 cycles.
/// Latency     12 cycles from `start_i` to `job_valid_o`.
/// Stalls      `done_o` not taken stops completions, two of them stop acceptance.
/// Errors      A record that cannot be written turns its completion into AXI_ERROR, reason WRITE,
///             with the record's address. With `CoreSeesErrors` = 0 a result OK with a note of the
///             guard becomes AXI_ERROR with the note's address.
/// Reset       Forgets all jobs. RESULT reads as 0 until the first `done_o`.
module hotline_job_control
  import hotline_pkg::*;
#(
  /// 1: the core reports errors of its accesses itself; 0: the guard's note stands in (HLS cores,
  /// which then must hold one job at a time).
  parameter bit CoreSeesErrors = 1'b1
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  // Control and arguments, from the registers.
  input  logic         start_i,
  input  logic         resume_i,
  input  logic         abort_i,
  output logic         accept_o,
  output logic         abort_clear_o,
  output logic         done_o,
  output logic         done_set_o,
  output logic         idle_o,
  output logic         ready_o,
  output logic [511:0] result_o,

  // Latched arguments that the completion needs, and the verdict on them.
  input  logic [31:0]  tag_i,
  input  logic [7:0]   operation_i,
  input  logic [63:0]  record_i,
  output logic         check_start_o,
  input  logic         check_done_i,
  input  logic [7:0]   check_reason_i,
  input  logic         check_record_ok_i,

  // The core.
  output logic         job_valid_o,
  input  logic         job_ready_i,
  output logic         abort_o,
  input  logic         res_valid_i,
  output logic         res_ready_o,
  input  logic [7:0]   res_status_i,
  input  logic [7:0]   res_reason_i,
  input  logic [31:0]  res_epoch_i,
  input  logic [31:0]  res_samples_i,
  input  logic [31:0]  res_popular_i,
  input  logic [31:0]  res_cold_rows_i,
  input  logic [31:0]  res_pinned_lookups_i,
  input  logic [31:0]  res_eal_lookups_i,
  input  logic [31:0]  res_cold_lookups_i,
  input  logic [31:0]  res_lookups_i,
  input  logic [31:0]  res_stalls_i,
  input  logic [31:0]  res_error_sample_i,
  input  logic [31:0]  res_error_lookup_i,
  input  logic [63:0]  res_error_value_i,

  // The guard's note of an error.
  input  logic         note_valid_i,
  input  logic         note_write_i,
  input  logic [63:0]  note_addr_i,
  output logic         note_clear_o,

  // The record writer.
  output logic         record_start_o,
  output logic [63:0]  record_addr_o,
  output logic [511:0] record_o,
  input  logic         record_done_i,
  input  logic         record_error_i
);

  /// The completion record; the first member is its highest word.
  typedef struct packed {
    logic [63:0] error_value;
    logic [31:0] error_lookup;
    logic [31:0] error_sample;
    logic [31:0] stalls;
    logic [31:0] cycles;
    logic [31:0] lookups;
    logic [31:0] cold_lookups;
    logic [31:0] eal_lookups;
    logic [31:0] pinned_lookups;
    logic [31:0] cold_rows;
    logic [31:0] popular;
    logic [31:0] samples;
    logic [31:0] epoch;
    logic [7:0]  zero;
    logic [7:0]  reason;
    logic [7:0]  operation;
    logic [7:0]  status;
    logic [31:0] tag;
  } record_t;

  /// What the queue knows of an accepted and checked job.
  typedef struct packed {
    logic [31:0] tag;
    logic [7:0]  operation;
    logic [63:0] record;
    logic        record_ok;
    logic        good;
    logic [7:0]  reason;
  } ticket_t;

  typedef enum logic [1:0] {
    StTake,     // waits for the oldest job's result
    StWrite,    // the record is being written
    StPresent   // waits until the previous completion was taken
  } state_e;

  // ------------------------------------------------------------------------------------ acceptance

  logic       latched_q;       // the argument latch holds a job
  logic       job_valid_q;     // ... that was found good and is offered to the core
  logic       check_start_q;
  logic [1:0] open_q;          // jobs accepted and not done
  logic       done_q;
  logic       accept;
  logic       verdict_good;
  logic       verdict_bad;
  logic       job_transfer;
  logic       abort_core_q;
  logic       take;            // the oldest job leaves the queue
  logic       present;         // its completion becomes RESULT

  assign accept       = start_i && !latched_q && open_q != 2'd2 && !abort_i;
  assign verdict_good = check_done_i && check_reason_i == ReasonNone;
  assign verdict_bad  = check_done_i && check_reason_i != ReasonNone;
  assign job_transfer = job_valid_q && job_ready_i;

  assign accept_o      = accept;
  assign check_start_o = check_start_q;
  assign job_valid_o   = job_valid_q;
  assign ready_o       = !start_i && !latched_q && open_q != 2'd2 && !abort_i;
  assign idle_o        = !start_i && open_q == 2'd0 && !done_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      latched_q     <= 1'b0;
      job_valid_q   <= 1'b0;
      check_start_q <= 1'b0;
      open_q        <= 2'd0;
    end else begin
      check_start_q <= accept;
      open_q        <= open_q + 2'(accept) - 2'(present);
      if (accept) begin
        latched_q <= 1'b1;
      end else if (job_transfer || verdict_bad) begin
        latched_q <= 1'b0;
      end
      if (job_transfer) begin
        job_valid_q <= 1'b0;
      end else if (verdict_good) begin
        job_valid_q <= 1'b1;
      end
    end
  end

  // ----------------------------------------------------------------------------------- the queue

  logic [1:0] count_q;         // jobs checked and not taken
  ticket_t    head_q;
  ticket_t    tail_q;
  ticket_t    ticket;
  logic       head_ended;      // the oldest job has its status

  assign ticket = '{
      tag:       tag_i,
      operation: operation_i,
      record:    record_i,
      record_ok: check_record_ok_i,
      good:      verdict_good,
      reason:    check_reason_i
  };
  assign head_ended = count_q != 2'd0 && (!head_q.good || res_valid_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q <= 2'd0;
    end else begin
      count_q <= count_q + 2'(check_done_i) - 2'(take);
    end
  end

  // Not reset: qualified by the count.
  always_ff @(posedge clk_i) begin
    if (take) begin
      head_q <= count_q == 2'd2 ? tail_q : ticket;
    end else if (count_q == 2'd0) begin
      head_q <= ticket;
    end
    if (check_done_i) begin
      tail_q <= ticket;
    end
  end

  // --------------------------------------------------------------------------------------- abort

  logic [1:0] core_jobs_q;     // jobs that the core holds
  logic [1:0] core_jobs_d;
  logic       res_transfer;
  logic       undecided;       // an accepted job has no status yet

  assign res_transfer = res_valid_i && res_ready_o;
  assign core_jobs_d  = core_jobs_q + 2'(job_transfer) - 2'(res_transfer);
  assign undecided    = latched_q || count_q == 2'd2 || (count_q == 2'd1 && !head_ended);

  assign abort_o       = abort_core_q;
  assign abort_clear_o = abort_i && !undecided;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      core_jobs_q  <= 2'd0;
      abort_core_q <= 1'b0;
    end else begin
      core_jobs_q  <= core_jobs_d;
      abort_core_q <= (abort_i || abort_core_q) && core_jobs_d != 2'd0;
    end
  end

  // --------------------------------------------------------------------------------- completions

  state_e      state_q;
  record_t     completion_q;
  logic [63:0] record_addr_q;
  logic        record_start_q;
  record_t     result_q;
  logic [31:0] cycles_q;       // since the oldest job was accepted, or became the oldest
  logic [31:0] epoch_q;        // after the last job that ran
  record_t     from_core;
  record_t     refused;
  record_t     unwritten;
  logic        keeps_lookups;

  assign res_ready_o    = state_q == StTake && count_q != 2'd0 && head_q.good;
  assign take           = state_q == StTake && head_ended;
  assign present        = state_q == StPresent && !done_q;
  assign note_clear_o   = res_transfer;

  assign done_o         = done_q;
  assign done_set_o     = present;
  assign result_o       = result_q;
  assign record_start_o = record_start_q;
  assign record_addr_o  = record_addr_q;
  assign record_o       = completion_q;

  // The result of a good job.
  always_comb begin
    from_core = '{
        tag:            head_q.tag,
        status:         res_status_i,
        operation:      head_q.operation,
        reason:         res_reason_i,
        zero:           '0,
        epoch:          res_epoch_i,
        samples:        res_samples_i,
        popular:        res_popular_i,
        cold_rows:      res_cold_rows_i,
        pinned_lookups: res_pinned_lookups_i,
        eal_lookups:    res_eal_lookups_i,
        cold_lookups:   res_cold_lookups_i,
        lookups:        res_lookups_i,
        cycles:         cycles_q + 32'd1,
        stalls:         res_stalls_i,
        error_sample:   res_error_sample_i,
        error_lookup:   res_error_lookup_i,
        error_value:    res_error_value_i
    };
    if (!CoreSeesErrors && note_valid_i && res_status_i == StatusOk) begin
      from_core = '0;
      from_core.tag         = head_q.tag;
      from_core.status      = StatusAxiError;
      from_core.operation   = head_q.operation;
      from_core.reason      = note_write_i ? ReasonWrite : ReasonRead;
      from_core.epoch       = res_epoch_i;
      from_core.cycles      = cycles_q + 32'd1;
      from_core.stalls      = res_stalls_i;
      from_core.error_value = note_addr_i;
    end
  end

  // The result of a bad job. `epoch_q` and not the core's, which may be one job ahead.
  always_comb begin
    refused = '0;
    refused.tag       = head_q.tag;
    refused.status    = StatusBadConfig;
    refused.operation = head_q.operation;
    refused.reason    = head_q.reason;
    refused.epoch     = epoch_q;
    refused.cycles    = cycles_q + 32'd1;
  end

  // What a completion becomes when its record cannot be written: counts as for any AXI_ERROR.
  assign keeps_lookups = completion_q.operation inside {OpLearn, OpLoad, OpEvict};
  always_comb begin
    unwritten = '0;
    unwritten.tag         = completion_q.tag;
    unwritten.status      = StatusAxiError;
    unwritten.operation   = completion_q.operation;
    unwritten.reason      = ReasonWrite;
    unwritten.epoch       = completion_q.epoch;
    unwritten.lookups     = keeps_lookups ? completion_q.lookups : '0;
    unwritten.cycles      = completion_q.cycles;
    unwritten.stalls      = completion_q.stalls;
    unwritten.error_value = record_addr_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q        <= StTake;
      record_start_q <= 1'b0;
      done_q         <= 1'b0;
      epoch_q        <= '0;
      result_q       <= '0;
    end else begin
      record_start_q <= take && head_q.record_ok;
      unique case (state_q)
        StTake:    if (take) state_q <= head_q.record_ok ? StWrite : StPresent;
        StWrite:   if (record_done_i) state_q <= StPresent;
        StPresent: if (!done_q) state_q <= StTake;
        default:   state_q <= StTake;
      endcase
      if (present) begin
        done_q   <= 1'b1;
        result_q <= completion_q;
      end else if (resume_i) begin
        done_q <= 1'b0;
      end
      if (res_transfer) begin
        epoch_q <= res_epoch_i;
      end
    end
  end

  // Not reset: qualified by the state.
  always_ff @(posedge clk_i) begin
    if (take) begin
      completion_q  <= head_q.good ? from_core : refused;
      record_addr_q <= head_q.record;
    end else if (state_q == StWrite && record_done_i && record_error_i) begin
      completion_q <= unwritten;
    end
    if (take || (accept && !latched_q && count_q == 2'd0)) begin
      cycles_q <= '0;
    end else begin
      cycles_q <= cycles_q + 32'd1;
    end
  end

`ifndef SYNTHESIS
  a_result_has_job : assert property (@(posedge clk_i) disable iff (!rst_ni)
      res_valid_i |-> core_jobs_q != 2'd0);
  a_result_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      res_valid_i && !res_ready_o |=> res_valid_i && $stable(
      {res_status_i, res_reason_i, res_epoch_i, res_samples_i, res_popular_i, res_cold_rows_i,
       res_pinned_lookups_i, res_eal_lookups_i, res_cold_lookups_i, res_lookups_i,
       res_error_sample_i, res_error_lookup_i, res_error_value_i}));
  a_job_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      job_valid_o && !job_ready_i |=> job_valid_o);
  a_record_done : assert property (@(posedge clk_i) disable iff (!rst_ni)
      record_done_i |-> state_q == StWrite);
  a_two_open : assert property (@(posedge clk_i) disable iff (!rst_ni) open_q != 2'd3);
`endif

endmodule
