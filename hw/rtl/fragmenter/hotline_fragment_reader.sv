// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Latches the next job of the fragmenter and starts its reads while the job before is processed.
///
///   job_* --> [next job: arguments] --nxt_*--> processing
///                  +--> [command] --> read engine, channel of the ids
///                  +--> [command] --> read engine, channel of the offsets
///
/// The commands of a channel queue in the read engine, so the beats of the next job lie behind those
/// of the current one. The reader therefore notes, for both jobs, whether the last beat of their
/// command is still to be popped: `*_pending_o` says so of the current job. At its end the processing
/// raises `drain_i`; the reader cancels what is left of the job's commands and lets the rest be
/// popped (`*_drain_o`).
///
/// Throughput  One job at a time: `job_ready_o` is low while a next job waits, or a command of the
///             last one.
/// Latency     4 cycles from a job to its commands.
/// Stalls      By the command queues of the read engine.
/// Errors      None here.
/// Abort       The read engine ends the commands; the jobs go the usual way.
/// Reset       Drops all jobs.
module hotline_fragment_reader import hotline_pkg::*; #(
  /// Width of the data bus.
  parameter int unsigned BusBits = 64
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        job_valid_i,
  output logic        job_ready_o,
  input  logic [7:0]  job_operation_i,
  input  logic [63:0] job_ids_i,
  input  logic [63:0] job_offsets_i,
  input  logic [31:0] job_lookups_i,
  input  logic [31:0] job_samples_i,
  input  logic [15:0] job_bags_i,
  input  logic        job_entries_i,

  /// The next job waits, and whoever keeps its other arguments may hand it on.
  output logic        nxt_valid_o,
  input  logic        nxt_ready_i,
  /// samples * bags + 1 of the job handed on last; the shell has checked that it fits.
  output logic [31:0] cur_entries_o,

  /// The current job needs no more of its streams.
  input  logic        drain_i,

  output logic        ids_cmd_valid_o,
  input  logic        ids_cmd_ready_i,
  output logic [63:0] ids_cmd_addr_o,
  output logic [31:0] ids_cmd_beats_o,
  output logic        ids_cancel_o,
  /// A last beat of the channel was popped.
  input  logic        ids_last_i,
  output logic        ids_pending_o,
  output logic        ids_drain_o,

  output logic        off_cmd_valid_o,
  input  logic        off_cmd_ready_i,
  output logic [63:0] off_cmd_addr_o,
  output logic [31:0] off_cmd_beats_o,
  output logic        off_cancel_o,
  input  logic        off_last_i,
  output logic        off_pending_o,
  output logic        off_drain_o
);

  localparam int unsigned Lanes    = BusBits / 32;
  localparam int unsigned LaneBits = $clog2(Lanes);
  localparam int unsigned Channels = 2;

  // ------------------------------------------------------------------------------------ next job
  typedef enum logic [1:0] {
    StEmpty,    // no next job
    StProduct,  // samples * bags
    StBeats,    // numbers of beats
    StWait      // reads started; waits for the processing
  } state_e;

  state_e      state_q;
  logic        job_fire, hand_on, load;
  logic [7:0]  operation_q;
  logic        entries_q, some_q;
  logic [63:0] ids_q, offsets_q;
  logic [31:0] lookups_q, samples_q;
  logic [15:0] bags_q;
  logic [31:0] product_q;
  logic [31:0] next_entries_q;
  logic [Channels-1:0] busy;

  assign job_ready_o = state_q == StEmpty && busy == '0;
  assign job_fire    = job_valid_i && job_ready_o;
  assign nxt_valid_o = state_q == StWait;
  assign hand_on     = nxt_valid_o && nxt_ready_i;
  assign load        = state_q == StBeats;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StEmpty;
    end else begin
      unique case (state_q)
        StEmpty:   if (job_fire) state_q <= StProduct;
        StProduct: state_q <= StBeats;
        StBeats:   state_q <= StWait;
        default:   if (hand_on) state_q <= StEmpty;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (job_fire) begin
      operation_q <= job_operation_i;
      ids_q       <= job_ids_i;
      offsets_q   <= job_offsets_i;
      lookups_q   <= job_lookups_i;
      samples_q   <= job_samples_i;
      bags_q      <= job_bags_i;
      entries_q   <= job_entries_i;
      some_q      <= job_lookups_i != '0;
    end
    product_q <= samples_q * 32'(bags_q);
    if (load) begin
      next_entries_q <= product_q + 1'b1;
    end
    if (hand_on) begin
      cur_entries_o <= next_entries_q;
    end
  end

  // ---------------------------------------------------------------------- commands, per channel
  logic [Channels-1:0]       start, cmd_valid, cmd_ready, cancel, last, pending, drain;
  logic [Channels-1:0][63:0] base, cmd_addr;
  logic [Channels-1:0][31:0] beats, cmd_beats;
  logic                      lists_ids;

  assign lists_ids = operation_q == OpFragment || operation_q == OpLearn || operation_q == OpLoad
                     || operation_q == OpEvict;

  always_comb begin
    start[0] = load && lists_ids && some_q;
    base[0]  = ids_q;
    beats[0] = ((lookups_q << entries_q) + 32'(Lanes - 1)) >> LaneBits;
    start[1] = load && operation_q == OpFragment && bags_q != '0;
    base[1]  = offsets_q;
    beats[1] = (product_q >> LaneBits) + 1'b1;  // entries = product + 1
  end

  for (genvar channel = 0; channel < int'(Channels); channel++) begin : gen_channel
    logic        busy_q;       // a command is offered
    logic        for_next_q;   // it belongs to the next job
    logic [63:0] addr_q;
    logic [31:0] beats_q;
    logic        fire;
    logic        open_q;       // the current job's command was taken, its last beat not popped
    logic        open_next_q;  // the same of the next job
    logic        armed_q;      // the command was not cancelled

    assign fire = cmd_valid[channel] && cmd_ready[channel];

    assign busy[channel]      = busy_q;
    assign cmd_valid[channel] = busy_q;
    assign cmd_addr[channel]  = addr_q;
    assign cmd_beats[channel] = beats_q;
    assign pending[channel]   = open_q || (busy_q && !for_next_q);
    assign cancel[channel]    = drain_i && open_q && armed_q;
    assign drain[channel]     = drain_i && open_q && !armed_q;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        busy_q      <= 1'b0;
        for_next_q  <= 1'b0;
        open_q      <= 1'b0;
        open_next_q <= 1'b0;
        armed_q     <= 1'b1;
      end else begin
        if (start[channel]) begin
          busy_q     <= 1'b1;
          for_next_q <= 1'b1;
        end else begin
          busy_q     <= busy_q && !fire;
          for_next_q <= for_next_q && !hand_on;
        end

        if (hand_on) begin
          // Nothing of the job before is left.
          open_q      <= open_next_q || fire;
          open_next_q <= 1'b0;
        end else begin
          open_q      <= (open_q && !last[channel]) || (fire && !for_next_q);
          open_next_q <= open_next_q || (fire && for_next_q);
        end

        armed_q <= !drain_i || (armed_q && !cancel[channel]);
      end
    end

    always_ff @(posedge clk_i) begin
      if (start[channel]) begin
        addr_q  <= base[channel];
        beats_q <= beats[channel];
      end
    end

`ifndef SYNTHESIS
    a_hand_on : assert property (@(posedge clk_i) disable iff (!rst_ni)
        hand_on |-> !open_q && !last[channel] && (!busy_q || for_next_q));
    a_last : assert property (@(posedge clk_i) disable iff (!rst_ni)
        last[channel] |-> open_q);
`endif
  end

  assign cmd_ready     = {off_cmd_ready_i, ids_cmd_ready_i};
  assign last          = {off_last_i, ids_last_i};
  assign {off_cmd_valid_o, ids_cmd_valid_o} = cmd_valid;
  assign {off_cmd_addr_o, ids_cmd_addr_o}   = cmd_addr;
  assign {off_cmd_beats_o, ids_cmd_beats_o} = cmd_beats;
  assign {off_cancel_o, ids_cancel_o}       = cancel;
  assign {off_pending_o, ids_pending_o}     = pending;
  assign {off_drain_o, ids_drain_o}         = drain;

endmodule
