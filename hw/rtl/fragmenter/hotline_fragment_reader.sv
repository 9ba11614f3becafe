// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Latches the next job of the fragmenter and starts its reads while the job before is processed.
///
///   job_* --> [next job: arguments] --nxt_*--> processing
///                  +--> [ids: one command] ---------------> read engine, channel 0
///                  +--> [offsets: a command per chunk] ----> read engine, channel 1
///
/// The commands of a channel queue in the read engine, so the beats of the next job lie behind those
/// of the current one. The reader therefore counts, for both jobs, the commands whose last beat has
/// not been popped: `*_pending_o` says that beats of the current job are still to come. At its end the
/// processing raises `drain_i`; the reader cancels what is left of the job's commands, issues no
/// further ones, and lets the rest be popped (`*_drain_o`).
///
/// Throughput  A command per cycle and channel.
/// Latency     4 cycles from a job to its first command.
/// Stalls      `job_ready_o` is low while a next job waits, or its reads are not all commanded.
/// Errors      None here.
/// Abort       No new chunk is begun; commands that were begun are ended by the read engine.
/// Reset       Drops all jobs.
module hotline_fragment_reader import hotline_pkg::*; #(
  /// Width of the data bus.
  parameter int unsigned BusBits    = 64,
  /// Beats of an offsets command, at most; keeps the counts small.
  parameter int unsigned ChunkBeats = 65536
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        abort_i,

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
  /// samples * bags + 1 of the job handed on last.
  output logic [44:0] cur_entries_o,

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
  localparam int unsigned ByteBits = $clog2(BusBits / 8);
  localparam int unsigned Channels = 2;
  // Commands that the read engine can hold or whose beats it can hold; generous.
  localparam int unsigned OpenBits = 16;
  localparam int unsigned BeatBits = 45;

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
  logic [43:0] product_q;
  logic [44:0] next_entries_q;
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
    // At most 2**28 samples of 2**16 - 1 bags.
    product_q <= 44'(samples_q) * 44'(bags_q);
    if (load) begin
      next_entries_q <= 45'(product_q) + 1'b1;
    end
    if (hand_on) begin
      cur_entries_o <= next_entries_q;
    end
  end

  // ---------------------------------------------------------------------- commands, per channel
  logic [Channels-1:0]               start, cmd_valid, cmd_ready, cancel, last, pending, drain;
  logic [Channels-1:0][63:0]         base, cmd_addr;
  logic [Channels-1:0][BeatBits-1:0] beats;
  logic [Channels-1:0][31:0]         cmd_beats;
  logic                              lists_ids;

  assign lists_ids = operation_q == OpFragment || operation_q == OpLearn || operation_q == OpLoad
                     || operation_q == OpEvict;

  always_comb begin
    start[0] = load && lists_ids && some_q;
    base[0]  = ids_q;
    beats[0] = (BeatBits'(lookups_q << entries_q) + BeatBits'(Lanes - 1)) >> LaneBits;
    start[1] = load && operation_q == OpFragment && bags_q != '0;
    base[1]  = offsets_q;
    beats[1] = (BeatBits'(product_q) + BeatBits'(Lanes)) >> LaneBits;
  end

  for (genvar channel = 0; channel < int'(Channels); channel++) begin : gen_channel
    // ids fit one command whatever the job.
    localparam int unsigned Chunk = channel == 0 ? 32'h8000_0000 : ChunkBeats;

    logic                busy_q;
    logic                for_next_q;      // the command belongs to the next job
    logic [63:0]         addr_q;
    logic [BeatBits-1:0] left_q;          // beats that are not commanded, this command included
    logic [31:0]         now;
    logic                fire, stop;
    logic [OpenBits-1:0] open_q, open_next_q;  // commands without their last beat: current, next
    logic                armed_q;         // the command at the head was not cancelled

    assign now  = left_q > BeatBits'(Chunk) ? Chunk : 32'(left_q);
    assign fire = cmd_valid[channel] && cmd_ready[channel];
    // An offered command is kept; what follows it is not begun.
    assign stop = abort_i || (drain_i && !for_next_q);

    assign busy[channel]      = busy_q;
    assign cmd_valid[channel] = busy_q;
    assign cmd_addr[channel]  = addr_q;
    assign cmd_beats[channel] = now;
    assign pending[channel]   = open_q != '0 || (busy_q && !for_next_q);
    assign cancel[channel]    = drain_i && open_q != '0 && armed_q;
    assign drain[channel]     = drain_i && open_q != '0 && !armed_q;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        busy_q      <= 1'b0;
        for_next_q  <= 1'b0;
        open_q      <= '0;
        open_next_q <= '0;
        armed_q     <= 1'b1;
      end else begin
        if (start[channel]) begin
          busy_q     <= 1'b1;
          for_next_q <= 1'b1;
        end else begin
          if (fire) begin
            busy_q <= !stop && left_q > BeatBits'(Chunk);
          end
          if (hand_on) begin
            for_next_q <= 1'b0;
          end
        end

        if (hand_on) begin
          // Nothing of the job before is left.
          open_q      <= open_next_q + OpenBits'(fire && for_next_q);
          open_next_q <= '0;
        end else begin
          open_q      <= open_q + OpenBits'(fire && !for_next_q) - OpenBits'(last[channel]);
          open_next_q <= open_next_q + OpenBits'(fire && for_next_q);
        end

        armed_q <= !drain_i || last[channel] || (armed_q && !cancel[channel]);
      end
    end

    always_ff @(posedge clk_i) begin
      if (start[channel]) begin
        addr_q <= base[channel];
        left_q <= beats[channel];
      end else if (fire) begin
        addr_q <= addr_q + (64'(Chunk) << ByteBits);
        left_q <= left_q - BeatBits'(Chunk);
      end
    end

`ifndef SYNTHESIS
    a_hand_on : assert property (@(posedge clk_i) disable iff (!rst_ni)
        hand_on |-> open_q == '0 && !last[channel] && (!busy_q || for_next_q));
    a_last : assert property (@(posedge clk_i) disable iff (!rst_ni)
        last[channel] |-> open_q != '0);
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
