"""Fields of certificates that we read ourselves; OpenSSL does everything else."""

from cryptography import x509


def expires_at(pem: bytes) -> float | None:
    """When the first certificate in `pem` ends, in seconds since 1970; None if there is none that can be read.

    OpenSSL and this library do not refuse the same ones, so a certificate that is in use may be one of them.
    """
    try:
        return x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()
    except ValueError:
        return None
