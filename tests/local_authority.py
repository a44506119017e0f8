# SPDX-License-Identifier: Apache-2.0
"""The local CA that `monkey --https` creates, in a state folder of the test.

    state = State(tmp_path / "state")
    run("ca", environment=state.environment)
    state.leaf.not_valid_after_utc
    state.replace_leaf(since=70)            issued 70 days ago
"""
import datetime
import ssl
import subprocess

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from monkey import PROGRAM

HAS_TLS = PROGRAM.exists() and "TLS       no" not in subprocess.run([PROGRAM, "-V"], capture_output=True, text=True,
                                                                     check=False).stdout
DAY = datetime.timedelta(days=1)


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def pem_of_key(key):
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                             serialization.NoEncryption())


def pem_of(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)


def names_of(certificate):
    """Returns the host names and addresses as text."""
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(n) for n in names.get_values_for_type(x509.DNSName) + names.get_values_for_type(x509.IPAddress)]


def machine_addresses():
    """Returns the addresses of all active interfaces, except IPv6 addresses that need a zone."""
    lines = subprocess.run(["ip", "-o", "addr", "show", "up"], capture_output=True, text=True, check=True).stdout
    words = [line.split() for line in lines.splitlines()]
    addresses = {w[3].split("/")[0] for w in words if w[2] in ("inet", "inet6")}
    return {a for a in addresses if not a.startswith("fe80:")}


class State:
    def __init__(self, folder):
        self.folder = folder
        self.environment = {"MONKEY_STATE": str(folder)}
        self.key, self.authority_file = folder / "ca.key", folder / "ca.crt"
        self.leaf_file = folder / "server.pem"

    @property
    def authority(self):
        return x509.load_pem_x509_certificate(self.authority_file.read_bytes())

    @property
    def fingerprint(self):
        return self.authority.fingerprint(hashes.SHA256()).hex(":").upper()

    @property
    def leaf(self):
        return x509.load_pem_x509_certificate(self.leaf_file.read_bytes())

    def context(self):
        """Returns a context for clients that trust only this authority and verify strictly."""
        context = ssl.create_default_context(cafile=str(self.authority_file))
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    def replace_leaf(self, since=0, until=None, names=None):
        """Replaces the leaf certificate with one that was issued `since` days ago."""
        authority, old = self.authority, self.leaf
        signer = serialization.load_pem_private_key(self.key.read_bytes(), None)
        key = ec.generate_private_key(ec.SECP256R1())
        begins = now() - since * DAY
        leaf = x509.CertificateBuilder(
            subject_name=x509.Name([]), issuer_name=authority.subject, public_key=key.public_key(),
            serial_number=x509.random_serial_number(), not_valid_before=begins,
            not_valid_after=begins + (until or 90) * DAY)
        names = old.extensions.get_extension_for_class(x509.SubjectAlternativeName).value if names is None else names
        leaf = (leaf.add_extension(names, True)
                .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
                .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), False)
                .sign(signer, hashes.SHA256()))
        fresh = self.folder / "fresh"
        fresh.write_bytes(pem_of(leaf) + pem_of_key(key))
        fresh.chmod(0o600)
        fresh.rename(self.leaf_file)
        return leaf

    def replace_authority(self, since=0, days=3650, ca=True, key=None):
        """Replaces the authority's certificate; `key` may be a key that does not match."""
        own = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "another")])
        usage = x509.KeyUsage(not ca, False, False, False, False, ca, ca, False, False)
        made = (x509.CertificateBuilder(
            subject_name=name, issuer_name=name, public_key=own.public_key(),
            serial_number=x509.random_serial_number(), not_valid_before=now() - since * DAY,
            not_valid_after=now() + (days - since) * DAY)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=0 if ca else None), True)
            .add_extension(usage, True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(own.public_key()), False)
            .sign(own, hashes.SHA256()))
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.key.write_bytes(pem_of_key(key or own) + pem_of(made))
        self.key.chmod(0o600)
        return made
