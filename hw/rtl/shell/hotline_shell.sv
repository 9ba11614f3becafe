// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Everything of a kernel but its core: registers, jobs, completions, the AXI port.
///
/// A core (RTL or HLS) has the ports of docs/modules/README.md; the shell has their counterparts.
///
///   s_axi_control --> hotline_csr <--> hotline_job_control --> job_*  --> core
///                        ^  |             |       ^      <---- res_*  <--
///        hotline_stats --+  +-> latch --> hotline_job_check
///                                         |
///                         hotline_record_writer --> hotline_axi_mux --> hotline_axi_guard --> m_*
///                                             core_aw/w/b --^   core_ar/r ----^
///
/// Throughput  The AXI port: 1 transfer per cycle and channel. Registers: one access in 2 cycles.
/// Latency     1 cycle per AXI channel; 12 cycles from a write of `start` to `job_valid_o`.
/// Stalls      See hotline_job_control and hotline_axi_guard.
/// Errors      BAD_CONFIG, and AXI_ERROR for a record that cannot be written; the core's own
///             otherwise. Accesses to addresses without a register answer OKAY, read 0.
/// Reset       Forgets all jobs; registers return to their reset values. `s_axi_control_*ready` are
///             low in reset. The memory side must be reset too, or be quiet.
module hotline_shell
  import hotline_pkg::*;
#(
  /// Bit n: operation code n is offered.
  parameter logic [31:0] Operations = 32'h0000_037E,
  /// Width of the data bus: 64, 128, 256 or 512.
  parameter int unsigned BusBits = 64,
  /// Geometry of the EAL; 0 if the core has none.
  parameter int unsigned EalSets = 16,
  parameter int unsigned EalWays = 16,
  /// Most lookups of a sample; 0 if the core knows no samples.
  parameter int unsigned LookupsMax = 64,
  /// Depth of the cold tracker; 0 if the core has none.
  parameter int unsigned ColdRowsMax = 128,
  /// Longest burst of the core, for the identity.
  parameter int unsigned BurstBeats = 16,
  /// Bursts outstanding, at most (1 to 256).
  parameter int unsigned ReadOutstanding = 16,
  parameter int unsigned WriteOutstanding = 16,
  /// Clock of the build, for the identity.
  parameter int unsigned ClockKhz = 100_000,
  /// First 32 bits of the hash of the sources, for the identity.
  parameter logic [31:0] BuildId = 32'd0,
  /// 0 for cores that do not look at AXI responses; see hotline_job_control.
  parameter bit CoreSeesErrors = 1'b1,
  localparam int unsigned StrbBits = BusBits / 8
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  output logic                interrupt_o,

  // AXI4-Lite, registers; names as the bus has them.
  input  logic                s_axi_control_awvalid,
  output logic                s_axi_control_awready,
  input  logic [11:0]         s_axi_control_awaddr,
  input  logic [2:0]          s_axi_control_awprot,
  input  logic                s_axi_control_wvalid,
  output logic                s_axi_control_wready,
  input  logic [31:0]         s_axi_control_wdata,
  input  logic [3:0]          s_axi_control_wstrb,
  output logic                s_axi_control_bvalid,
  input  logic                s_axi_control_bready,
  output logic [1:0]          s_axi_control_bresp,
  input  logic                s_axi_control_arvalid,
  output logic                s_axi_control_arready,
  input  logic [11:0]         s_axi_control_araddr,
  input  logic [2:0]          s_axi_control_arprot,
  output logic                s_axi_control_rvalid,
  input  logic                s_axi_control_rready,
  output logic [31:0]         s_axi_control_rdata,
  output logic [1:0]          s_axi_control_rresp,

  // Jobs for the core. Arguments are stable while `job_valid_o` is high.
  output logic                job_valid_o,
  input  logic                job_ready_i,
  output logic [7:0]          job_operation_o,
  output logic [63:0]         job_ids_o,
  output logic [63:0]         job_offsets_o,
  output logic [63:0]         job_indices_o,
  output logic [63:0]         job_popular_o,
  output logic [63:0]         job_nonpopular_o,
  output logic [63:0]         job_bitmap_o,
  output logic [63:0]         job_cold_o,
  output logic [63:0]         job_records_o,
  output logic [63:0]         job_store_o,
  output logic [31:0]         job_lookups_o,
  output logic [31:0]         job_samples_o,
  output logic [31:0]         job_bags_o,
  output logic [31:0]         job_lookups_per_sample_o,
  output logic [31:0]         job_total_rows_o,
  output logic [31:0]         job_pinned_rows_o,
  output logic [31:0]         job_cold_base_o,
  output logic [31:0]         job_cold_rows_max_o,
  output logic [31:0]         job_record_bytes_o,
  output logic [31:0]         job_segments_o,
  output logic [31:0]         job_segment_shift_o,
  output logic [31:0]         job_flags_o,
  output logic                abort_o,

  // Results of the core.
  input  logic                res_valid_i,
  output logic                res_ready_o,
  input  logic [7:0]          res_status_i,
  input  logic [7:0]          res_reason_i,
  input  logic [31:0]         res_epoch_i,
  input  logic [31:0]         res_samples_i,
  input  logic [31:0]         res_popular_i,
  input  logic [31:0]         res_cold_rows_i,
  input  logic [31:0]         res_pinned_lookups_i,
  input  logic [31:0]         res_eal_lookups_i,
  input  logic [31:0]         res_cold_lookups_i,
  input  logic [31:0]         res_lookups_i,
  input  logic [31:0]         res_stalls_i,
  input  logic [31:0]         res_error_sample_i,
  input  logic [31:0]         res_error_lookup_i,
  input  logic [63:0]         res_error_value_i,
  input  logic [31:0]         epoch_i,

  // AXI channels of the core.
  input  logic                core_ar_valid_i,
  output logic                core_ar_ready_o,
  input  logic [63:0]         core_ar_addr_i,
  input  logic [7:0]          core_ar_len_i,
  output logic                core_r_valid_o,
  input  logic                core_r_ready_i,
  output logic [BusBits-1:0]  core_r_data_o,
  output logic [1:0]          core_r_resp_o,
  output logic                core_r_last_o,
  output logic [63:0]         core_r_addr_o,
  input  logic                core_aw_valid_i,
  output logic                core_aw_ready_o,
  input  logic [63:0]         core_aw_addr_i,
  input  logic [7:0]          core_aw_len_i,
  input  logic                core_w_valid_i,
  output logic                core_w_ready_o,
  input  logic [BusBits-1:0]  core_w_data_i,
  input  logic [StrbBits-1:0] core_w_strb_i,
  input  logic                core_w_last_i,
  output logic                core_b_valid_o,
  input  logic                core_b_ready_i,
  output logic [1:0]          core_b_resp_o,
  output logic [63:0]         core_b_addr_o,

  // Events of the core, for the counters.
  input  logic                stat_busy_i,
  input  logic                stat_stall_read_i,
  input  logic                stat_stall_write_i,
  input  logic                stat_stall_bank_i,
  input  logic                stat_stall_tracker_i,

  // AXI4 towards the memory: id 0, size of the bus, INCR.
  output logic                m_ar_valid_o,
  input  logic                m_ar_ready_i,
  output logic [63:0]         m_ar_addr_o,
  output logic [7:0]          m_ar_len_o,
  input  logic                m_r_valid_i,
  output logic                m_r_ready_o,
  input  logic [BusBits-1:0]  m_r_data_i,
  input  logic [1:0]          m_r_resp_i,
  input  logic                m_r_last_i,
  output logic                m_aw_valid_o,
  input  logic                m_aw_ready_i,
  output logic [63:0]         m_aw_addr_o,
  output logic [7:0]          m_aw_len_o,
  output logic                m_w_valid_o,
  input  logic                m_w_ready_i,
  output logic [BusBits-1:0]  m_w_data_o,
  output logic [StrbBits-1:0] m_w_strb_o,
  output logic                m_w_last_o,
  input  logic                m_b_valid_i,
  output logic                m_b_ready_o,
  input  logic [1:0]          m_b_resp_i
);

  localparam bit Fragments = Operations[5'(OpFragment)];
  localparam bit Moves = Operations[5'(OpGather)] || Operations[5'(OpScatter)];

  localparam int unsigned Counters = 9;

  hotline_csr_pkg::hotline_csr__in_t  hwif_in;
  hotline_csr_pkg::hotline_csr__out_t hwif_out;

  // ------------------------------------------------------------------------------------- registers

  // Low in reset and for one cycle beyond, so that no access is lost in it.
  logic live_q;
  logic csr_awready;
  logic csr_wready;
  logic csr_arready;

  always_ff @(posedge clk_i) live_q <= rst_ni;

  assign s_axi_control_awready = csr_awready && live_q;
  assign s_axi_control_wready  = csr_wready && live_q;
  assign s_axi_control_arready = csr_arready && live_q;

  hotline_csr u_csr (
    .clk           (clk_i),
    .rst_n         (rst_ni),
    .s_axil_awready(csr_awready),
    .s_axil_awvalid(s_axi_control_awvalid && live_q),
    .s_axil_awaddr (s_axi_control_awaddr),
    .s_axil_awprot (s_axi_control_awprot),
    .s_axil_wready (csr_wready),
    .s_axil_wvalid (s_axi_control_wvalid && live_q),
    .s_axil_wdata  (s_axi_control_wdata),
    .s_axil_wstrb  (s_axi_control_wstrb),
    .s_axil_bready (s_axi_control_bready),
    .s_axil_bvalid (s_axi_control_bvalid),
    .s_axil_bresp  (s_axi_control_bresp),
    .s_axil_arready(csr_arready),
    .s_axil_arvalid(s_axi_control_arvalid && live_q),
    .s_axil_araddr (s_axi_control_araddr),
    .s_axil_arprot (s_axi_control_arprot),
    .s_axil_rready (s_axi_control_rready),
    .s_axil_rvalid (s_axi_control_rvalid),
    .s_axil_rdata  (s_axi_control_rdata),
    .s_axil_rresp  (s_axi_control_rresp),
    .hwif_in,
    .hwif_out
  );

  // ---------------------------------------------------------------------------- the argument latch

  logic        accept;
  logic [31:0] tag_q;
  logic [31:0] operation_q;
  logic [63:0] record_q;
  logic [63:0] ids_q;
  logic [63:0] offsets_q;
  logic [63:0] indices_q;
  logic [63:0] popular_q;
  logic [63:0] nonpopular_q;
  logic [63:0] bitmap_q;
  logic [63:0] cold_q;
  logic [63:0] records_q;
  logic [63:0] store_q;
  logic [31:0] lookups_q;
  logic [31:0] samples_q;
  logic [31:0] bags_q;
  logic [31:0] lookups_per_sample_q;
  logic [31:0] total_rows_q;
  logic [31:0] pinned_rows_q;
  logic [31:0] cold_base_q;
  logic [31:0] cold_rows_max_q;
  logic [31:0] record_bytes_q;
  logic [31:0] segments_q;
  logic [31:0] segment_shift_q;
  logic [31:0] flags_q;

  // Not reset: qualified by the state of hotline_job_control.
  always_ff @(posedge clk_i) begin
    if (accept) begin
      tag_q                <= hwif_out.TAG.value.value;
      operation_q          <= hwif_out.OPERATION.value.value;
      record_q             <= {hwif_out.RECORD_HI.value.value, hwif_out.RECORD_LO.value.value};
      ids_q                <= {hwif_out.IDS_HI.value.value, hwif_out.IDS_LO.value.value};
      offsets_q            <= {hwif_out.OFFSETS_HI.value.value, hwif_out.OFFSETS_LO.value.value};
      indices_q            <= {hwif_out.INDICES_HI.value.value, hwif_out.INDICES_LO.value.value};
      popular_q            <= {hwif_out.POPULAR_HI.value.value, hwif_out.POPULAR_LO.value.value};
      nonpopular_q         <= {hwif_out.NONPOPULAR_HI.value.value,
                               hwif_out.NONPOPULAR_LO.value.value};
      bitmap_q             <= {hwif_out.BITMAP_HI.value.value, hwif_out.BITMAP_LO.value.value};
      cold_q               <= {hwif_out.COLD_HI.value.value, hwif_out.COLD_LO.value.value};
      records_q            <= {hwif_out.RECORDS_HI.value.value, hwif_out.RECORDS_LO.value.value};
      store_q              <= {hwif_out.STORE_HI.value.value, hwif_out.STORE_LO.value.value};
      lookups_q            <= hwif_out.LOOKUPS.value.value;
      samples_q            <= hwif_out.SAMPLES.value.value;
      bags_q               <= hwif_out.BAGS.value.value;
      lookups_per_sample_q <= hwif_out.LOOKUPS_PER_SAMPLE.value.value;
      total_rows_q         <= hwif_out.TOTAL_ROWS.value.value;
      pinned_rows_q        <= hwif_out.PINNED_ROWS.value.value;
      cold_base_q          <= hwif_out.COLD_BASE.value.value;
      cold_rows_max_q      <= hwif_out.COLD_ROWS_MAX.value.value;
      record_bytes_q       <= hwif_out.RECORD_BYTES.value.value;
      segments_q           <= hwif_out.SEGMENTS.value.value;
      segment_shift_q      <= hwif_out.SEGMENT_SHIFT.value.value;
      flags_q              <= hwif_out.FLAGS.value.value;
    end
  end

  assign job_operation_o          = operation_q[7:0];
  assign job_ids_o                = ids_q;
  assign job_offsets_o            = offsets_q;
  assign job_indices_o            = indices_q;
  assign job_popular_o            = popular_q;
  assign job_nonpopular_o         = nonpopular_q;
  assign job_bitmap_o             = bitmap_q;
  assign job_cold_o               = cold_q;
  assign job_records_o            = records_q;
  assign job_store_o              = store_q;
  assign job_lookups_o            = lookups_q;
  assign job_samples_o            = samples_q;
  assign job_bags_o               = bags_q;
  assign job_lookups_per_sample_o = lookups_per_sample_q;
  assign job_total_rows_o         = total_rows_q;
  assign job_pinned_rows_o        = pinned_rows_q;
  assign job_cold_base_o          = cold_base_q;
  assign job_cold_rows_max_o      = cold_rows_max_q;
  assign job_record_bytes_o       = record_bytes_q;
  assign job_segments_o           = segments_q;
  assign job_segment_shift_o      = segment_shift_q;
  assign job_flags_o              = flags_q;

  // ---------------------------------------------------------------------------- jobs, completions

  logic              abort_clear;
  logic              done;
  logic              done_set;
  logic              idle;
  logic              ready;
  logic [15:0][31:0] result;
  logic              check_start;
  logic              check_done;
  logic [7:0]        check_reason;
  logic              check_record_ok;
  logic              note_valid;
  logic              note_write;
  logic [63:0]       note_addr;
  logic              note_clear;
  logic              record_start;
  logic [63:0]       record_addr;
  logic [511:0]      record;
  logic              record_done;
  logic              record_error;
  logic              interrupt_q;

  hotline_job_check #(
    .Operations (Operations),
    .EalEntries (EalSets * EalWays),
    .LookupsMax (LookupsMax),
    .ColdRowsMax(ColdRowsMax)
  ) u_check (
    .clk_i,
    .rst_ni,
    .start_i             (check_start),
    .operation_i         (operation_q),
    .record_i            (record_q),
    .ids_i               (ids_q),
    .offsets_i           (offsets_q),
    .indices_i           (indices_q),
    .popular_i           (popular_q),
    .nonpopular_i        (nonpopular_q),
    .bitmap_i            (bitmap_q),
    .cold_i              (cold_q),
    .records_i           (records_q),
    .store_i             (store_q),
    .lookups_i           (lookups_q),
    .samples_i           (samples_q),
    .bags_i              (bags_q),
    .lookups_per_sample_i(lookups_per_sample_q),
    .total_rows_i        (total_rows_q),
    .pinned_rows_i       (pinned_rows_q),
    .cold_base_i         (cold_base_q),
    .cold_rows_max_i     (cold_rows_max_q),
    .record_bytes_i      (record_bytes_q),
    .segments_i          (segments_q),
    .segment_shift_i     (segment_shift_q),
    .done_o              (check_done),
    .reason_o            (check_reason),
    .record_ok_o         (check_record_ok)
  );

  hotline_job_control #(
    .CoreSeesErrors(CoreSeesErrors)
  ) u_control (
    .clk_i,
    .rst_ni,
    .start_i          (hwif_out.CONTROL.start.value),
    .resume_i         (hwif_out.CONTROL.resume.value),
    .abort_i          (hwif_out.ABORT.abort.value),
    .accept_o         (accept),
    .abort_clear_o    (abort_clear),
    .done_o           (done),
    .done_set_o       (done_set),
    .idle_o           (idle),
    .ready_o          (ready),
    .result_o         (result),
    .tag_i            (tag_q),
    .operation_i      (operation_q[7:0]),
    .record_i         (record_q),
    .check_start_o    (check_start),
    .check_done_i     (check_done),
    .check_reason_i   (check_reason),
    .check_record_ok_i(check_record_ok),
    .job_valid_o,
    .job_ready_i,
    .abort_o,
    .res_valid_i,
    .res_ready_o,
    .res_status_i,
    .res_reason_i,
    .res_epoch_i,
    .res_samples_i,
    .res_popular_i,
    .res_cold_rows_i,
    .res_pinned_lookups_i,
    .res_eal_lookups_i,
    .res_cold_lookups_i,
    .res_lookups_i,
    .res_stalls_i,
    .res_error_sample_i,
    .res_error_lookup_i,
    .res_error_value_i,
    .note_valid_i     (note_valid),
    .note_write_i     (note_write),
    .note_addr_i      (note_addr),
    .note_clear_o     (note_clear),
    .record_start_o   (record_start),
    .record_addr_o    (record_addr),
    .record_o         (record),
    .record_done_i    (record_done),
    .record_error_i   (record_error)
  );

  assign interrupt_o = interrupt_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      interrupt_q <= 1'b0;
    end else begin
      interrupt_q <= hwif_out.GIE.enable.value &&
                     ((hwif_out.IER.done.value && hwif_out.ISR.done.value) ||
                      (hwif_out.IER.ready.value && hwif_out.ISR.ready.value));
    end
  end

  // -------------------------------------------------------------------------------------- AXI port

  logic                                    rec_aw_valid;
  logic                                    rec_aw_ready;
  logic [63:0]                             rec_aw_addr;
  logic [7:0]                              rec_aw_len;
  logic                                    rec_w_valid;
  logic                                    rec_w_ready;
  logic [BusBits-1:0]                      rec_w_data;
  logic [StrbBits-1:0]                     rec_w_strb;
  logic                                    rec_w_last;
  logic                                    rec_b_valid;
  logic                                    rec_b_ready;
  logic                                    mux_aw_valid;
  logic                                    mux_aw_ready;
  logic [63:0]                             mux_aw_addr;
  logic [7:0]                              mux_aw_len;
  logic                                    mux_aw_user;
  logic                                    mux_w_valid;
  logic                                    mux_w_ready;
  logic [BusBits-1:0]                      mux_w_data;
  logic [StrbBits-1:0]                     mux_w_strb;
  logic                                    mux_w_last;
  logic                                    mux_b_valid;
  logic                                    mux_b_ready;
  logic                                    mux_b_user;
  logic [$clog2(ReadOutstanding+1)-1:0]    reads_in_flight;
  logic [$clog2(WriteOutstanding+1)-1:0]   writes_in_flight;

  hotline_record_writer #(
    .BusBits(BusBits)
  ) u_record (
    .clk_i,
    .rst_ni,
    .start_i   (record_start),
    .addr_i    (record_addr),
    .record_i  (record),
    .done_o    (record_done),
    .error_o   (record_error),
    .aw_valid_o(rec_aw_valid),
    .aw_ready_i(rec_aw_ready),
    .aw_addr_o (rec_aw_addr),
    .aw_len_o  (rec_aw_len),
    .w_valid_o (rec_w_valid),
    .w_ready_i (rec_w_ready),
    .w_data_o  (rec_w_data),
    .w_strb_o  (rec_w_strb),
    .w_last_o  (rec_w_last),
    .b_valid_i (rec_b_valid),
    .b_ready_o (rec_b_ready),
    .b_resp_i  (core_b_resp_o)
  );

  hotline_axi_mux #(
    .BusBits(BusBits)
  ) u_mux (
    .clk_i,
    .rst_ni,
    .core_aw_valid_i,
    .core_aw_ready_o,
    .core_aw_addr_i,
    .core_aw_len_i,
    .core_w_valid_i,
    .core_w_ready_o,
    .core_w_data_i,
    .core_w_strb_i,
    .core_w_last_i,
    .core_b_valid_o,
    .core_b_ready_i,
    .rec_aw_valid_i(rec_aw_valid),
    .rec_aw_ready_o(rec_aw_ready),
    .rec_aw_addr_i (rec_aw_addr),
    .rec_aw_len_i  (rec_aw_len),
    .rec_w_valid_i (rec_w_valid),
    .rec_w_ready_o (rec_w_ready),
    .rec_w_data_i  (rec_w_data),
    .rec_w_strb_i  (rec_w_strb),
    .rec_w_last_i  (rec_w_last),
    .rec_b_valid_o (rec_b_valid),
    .rec_b_ready_i (rec_b_ready),
    .m_aw_valid_o  (mux_aw_valid),
    .m_aw_ready_i  (mux_aw_ready),
    .m_aw_addr_o   (mux_aw_addr),
    .m_aw_len_o    (mux_aw_len),
    .m_aw_user_o   (mux_aw_user),
    .m_w_valid_o   (mux_w_valid),
    .m_w_ready_i   (mux_w_ready),
    .m_w_data_o    (mux_w_data),
    .m_w_strb_o    (mux_w_strb),
    .m_w_last_o    (mux_w_last),
    .m_b_valid_i   (mux_b_valid),
    .m_b_ready_o   (mux_b_ready),
    .m_b_user_i    (mux_b_user)
  );

  hotline_axi_guard #(
    .BusBits         (BusBits),
    .ReadOutstanding (ReadOutstanding),
    .WriteOutstanding(WriteOutstanding)
  ) u_guard (
    .clk_i,
    .rst_ni,
    .in_ar_valid_i     (core_ar_valid_i),
    .in_ar_ready_o     (core_ar_ready_o),
    .in_ar_addr_i      (core_ar_addr_i),
    .in_ar_len_i       (core_ar_len_i),
    .in_r_valid_o      (core_r_valid_o),
    .in_r_ready_i      (core_r_ready_i),
    .in_r_data_o       (core_r_data_o),
    .in_r_resp_o       (core_r_resp_o),
    .in_r_last_o       (core_r_last_o),
    .in_r_addr_o       (core_r_addr_o),
    .in_aw_valid_i     (mux_aw_valid),
    .in_aw_ready_o     (mux_aw_ready),
    .in_aw_addr_i      (mux_aw_addr),
    .in_aw_len_i       (mux_aw_len),
    .in_aw_user_i      (mux_aw_user),
    .in_w_valid_i      (mux_w_valid),
    .in_w_ready_o      (mux_w_ready),
    .in_w_data_i       (mux_w_data),
    .in_w_strb_i       (mux_w_strb),
    .in_w_last_i       (mux_w_last),
    .in_b_valid_o      (mux_b_valid),
    .in_b_ready_i      (mux_b_ready),
    .in_b_resp_o       (core_b_resp_o),
    .in_b_addr_o       (core_b_addr_o),
    .in_b_user_o       (mux_b_user),
    .m_ar_valid_o,
    .m_ar_ready_i,
    .m_ar_addr_o,
    .m_ar_len_o,
    .m_r_valid_i,
    .m_r_ready_o,
    .m_r_data_i,
    .m_r_resp_i,
    .m_r_last_i,
    .m_aw_valid_o,
    .m_aw_ready_i,
    .m_aw_addr_o,
    .m_aw_len_o,
    .m_w_valid_o,
    .m_w_ready_i,
    .m_w_data_o,
    .m_w_strb_o,
    .m_w_last_o,
    .m_b_valid_i,
    .m_b_ready_o,
    .m_b_resp_i,
    .reads_in_flight_o (reads_in_flight),
    .writes_in_flight_o(writes_in_flight),
    .note_clear_i      (note_clear),
    .note_valid_o      (note_valid),
    .note_write_o      (note_write),
    .note_addr_o       (note_addr)
  );

  // -------------------------------------------------------------------------------------- counters

  logic [Counters-1:0][31:0] count;

  hotline_stats #(
    .Counters(Counters)
  ) u_stats (
    .clk_i,
    .rst_ni,
    .pulse_i({
      accept,
      m_w_valid_o && m_w_ready_i,
      m_r_valid_i && m_r_ready_o,
      stat_stall_tracker_i,
      stat_stall_bank_i,
      stat_stall_write_i,
      stat_stall_read_i,
      stat_busy_i,
      1'b1
    }),
    .count_o(count)
  );

  // ---------------------------------------------------------------------- what the registers show

  always_comb begin
    hwif_in.CONTROL.start.hwclr               = accept;
    hwif_in.CONTROL.done.next                 = done;
    hwif_in.CONTROL.idle.next                 = idle;
    hwif_in.CONTROL.ready.next                = ready;
    hwif_in.ISR.done.hwset                    = done_set;
    hwif_in.ISR.ready.hwset                   = accept;
    hwif_in.ABORT.abort.hwclr                 = abort_clear;

    hwif_in.RESULT.TAG.value.next             = result[0];
    hwif_in.RESULT.STATUS.status.next         = result[1][7:0];
    hwif_in.RESULT.STATUS.operation.next      = result[1][15:8];
    hwif_in.RESULT.STATUS.reason.next         = result[1][23:16];
    hwif_in.RESULT.EPOCH.value.next           = result[2];
    hwif_in.RESULT.SAMPLES.value.next         = result[3];
    hwif_in.RESULT.POPULAR.value.next         = result[4];
    hwif_in.RESULT.COLD_ROWS.value.next       = result[5];
    hwif_in.RESULT.PINNED_LOOKUPS.value.next  = result[6];
    hwif_in.RESULT.EAL_LOOKUPS.value.next     = result[7];
    hwif_in.RESULT.COLD_LOOKUPS.value.next    = result[8];
    hwif_in.RESULT.LOOKUPS.value.next         = result[9];
    hwif_in.RESULT.CYCLES.value.next          = result[10];
    hwif_in.RESULT.STALLS.value.next          = result[11];
    hwif_in.RESULT.ERROR_SAMPLE.value.next    = result[12];
    hwif_in.RESULT.ERROR_LOOKUP.value.next    = result[13];
    hwif_in.RESULT.ERROR_VALUE_LO.value.next  = result[14];
    hwif_in.RESULT.ERROR_VALUE_HI.value.next  = result[15];

    hwif_in.COUNTERS.CYCLES.value.next           = count[0];
    hwif_in.COUNTERS.BUSY.value.next             = count[1];
    hwif_in.COUNTERS.STALL_READ.value.next       = count[2];
    hwif_in.COUNTERS.STALL_WRITE.value.next      = count[3];
    hwif_in.COUNTERS.STALL_BANK.value.next       = count[4];
    hwif_in.COUNTERS.STALL_TRACKER.value.next    = count[5];
    hwif_in.COUNTERS.READ_BEATS.value.next       = count[6];
    hwif_in.COUNTERS.WRITE_BEATS.value.next      = count[7];
    hwif_in.COUNTERS.READS_IN_FLIGHT.value.next  = 32'(reads_in_flight);
    hwif_in.COUNTERS.WRITES_IN_FLIGHT.value.next = 32'(writes_in_flight);
    hwif_in.COUNTERS.JOBS.value.next             = count[8];

    hwif_in.IDENTITY.MAGIC.value.next            = Magic;
    hwif_in.IDENTITY.VERSION.value.next          = Version;
    hwif_in.IDENTITY.OPERATIONS.value.next       = Operations;
    hwif_in.IDENTITY.BUS_BITS.value.next         = BusBits;
    hwif_in.IDENTITY.EAL_SETS.value.next         = EalSets;
    hwif_in.IDENTITY.EAL_WAYS.value.next         = EalWays;
    hwif_in.IDENTITY.COUNTER_BITS.value.next     = EalSets != 0 ? CounterBits : 0;
    hwif_in.IDENTITY.LOOKUPS_MAX.value.next      = LookupsMax;
    hwif_in.IDENTITY.COLD_ROWS_MAX.value.next    = ColdRowsMax;
    hwif_in.IDENTITY.JOB_LOOKUPS_MAX.value.next  = JobLookupsMax;
    hwif_in.IDENTITY.JOB_SAMPLES_MAX.value.next  = Fragments ? JobSamplesMax : '0;
    hwif_in.IDENTITY.BAGS_MAX.value.next         = Fragments ? BagsMax : '0;
    hwif_in.IDENTITY.SEGMENTS_MAX.value.next     = Moves ? SegmentsMax : '0;
    hwif_in.IDENTITY.RECORD_BYTES_MAX.value.next = Moves ? RecordBytesMax : '0;
    hwif_in.IDENTITY.BURST_BEATS.value.next      = BurstBeats;
    hwif_in.IDENTITY.CLOCK_KHZ.value.next        = ClockKhz;
    hwif_in.IDENTITY.BUILD_ID.value.next         = BuildId;
    hwif_in.IDENTITY.EPOCH.value.next            = epoch_i;
  end

endmodule
